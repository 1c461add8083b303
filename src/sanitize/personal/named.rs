//! The words of numbers that have letters in them.
//!
//! Deliberately absent: how such a number is told (`lettered.rs`).

/// Numbers of digits and one letter or more, or with a grouping of their own: they are read by code.
pub(super) const LETTERED: &[(&str, &[&str])] = &[
    (
        "es_dni",
        &[
            "dni",
            "nif",
            "nie",
            "d.n.i.",
            "n.i.f.",
            "n.i.e.",
            "documento",
            "identidad",
            "spanish",
            "espa",
        ],
    ),
    (
        "es_cif",
        &[
            "cif",
            "nif",
            "identificaci\u{f3}n fiscal",
            "identificacion fiscal",
        ],
    ),
    (
        "sg_nric",
        &["nric", "fin", "singpass", "singapore", "identity", "ic"],
    ),
    (
        "gb_nino",
        &[
            "nino",
            "national insurance",
            "ni number",
            "ni no",
            "insurance number",
        ],
    ),
    (
        "ie_pps",
        &[
            "pps",
            "ppsn",
            "irish",
            "ireland",
            "revenue",
            "public service",
        ],
    ),
    ("ve_rif", &["rif", "r.i.f.", "informaci\u{f3}n fiscal"]),
    ("mu_nid", &["nic", "nid", "national id", "mauriti"]),
    (
        "pt_citizen_card",
        &[
            "cart\u{e3}o de cidad\u{e3}o",
            "cart\u{e3}o cidad\u{e3}o",
            "cc n",
            "citizen card",
            "cc",
        ],
    ),
    ("hk_id", &["hkid", "hong kong", "\u{8eab}\u{4efd}"]),
    (
        "tw_id",
        &[
            "taiwan",
            "national id",
            "\u{8eab}\u{5206}",
            "\u{8eab}\u{4efd}",
            "id number",
            "roc id",
            "shenfenzheng",
        ],
    ),
    ("fi_hetu", &[]),
    ("cl_rut", &[]),
    ("fr_nir", &[]),
    (
        "de_health_insurance",
        &[
            "kvnr",
            "krankenversich",
            "versichertennummer",
            "health insurance",
        ],
    ),
    (
        "de_pension_insurance",
        &[
            "rvnr",
            "rentenversicherung",
            "sozialversicherung",
            "social security",
            "svnr",
            "vsnr",
            "sv nummer",
        ],
    ),
    ("by_unp", &[]),
    ("gt_nit", &[]),
    (
        "gh_tin",
        &["tin", "ghana", "taxpayer identification", "ghana card"],
    ),
    ("gb_upn", &["upn", "unique pupil", "pupil number"]),
    (
        "nl_btw",
        &["btw", "omzetbelasting", "vat", "btw id", "dutch tax"],
    ),
    (
        "in_epic",
        &[
            "epic",
            "voter",
            "elector",
            "\u{92e}\u{924}\u{926}\u{93e}\u{924}\u{93e}",
        ],
    ),
    (
        "cy_tic",
        &[
            "tic",
            "cyprus",
            "cypriot",
            "\u{3b1}\u{3c6}\u{3c4}",
            "\u{3c6}\u{3bf}\u{3c1}\u{3bf}\u{3bb}\u{3bf}\u{3b3}\u{3b9}\u{3ba}\u{3ae}\u{3c2} \u{3c4}\u{3b1}\u{3c5}\u{3c4}",
        ],
    ),
    (
        "mx_rfc",
        &["rfc", "registro federal", "clave de rfc", "mexican"],
    ),
    ("it_codice_fiscale", &[]),
    ("mx_curp", &[]),
    ("cn_resident_id", &[]),
];
