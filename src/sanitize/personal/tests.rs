//! What is told of texts with numbers in them, and of texts with what only looks so.

use super::*;

pub(super) fn told(text: &str) -> Vec<(String, String)> {
    let mut hits = Vec::new();
    detector().inspect(text, &mut hits);
    hits.iter()
        .map(|hit| (hit.rule.to_string(), text[hit.span.clone()].to_owned()))
        .collect()
}

pub(super) fn names(text: &str) -> Vec<String> {
    told(text).into_iter().map(|(name, _)| name).collect()
}

/// Whether each of these texts holds a number of that name, the same with another check digit none, and the number alone none either:
/// without a word beside it that says what it is.
pub(super) fn hold_beside_a_word(numbers: &[(&str, &str, &str)]) {
    for (text, wrong, name) in numbers {
        assert_eq!(names(text), [*name], "{text}");
        assert_eq!(names(wrong), [""; 0], "{wrong}");
        let bare = text.rsplit(": ").next().unwrap_or_default();
        assert_eq!(names(&format!("item {bare}")), [""; 0], "{bare}");
    }
}

#[test]
fn a_card_is_told_grouped_or_not_and_at_both_ends_of_a_text() {
    for number in [
        "4929 1234 5678 9019",
        "4929-1234-5678-9019",
        "4929123456789019",
    ] {
        let (first, last) = number.split_at(4);
        // Completed so that the digit of Luhn holds.
        let number = (0..10)
            .map(|digit| format!("{first}{}{digit}", &last[..last.len() - 1]))
            .find(|number| {
                let digits: Vec<u8> = number
                    .bytes()
                    .filter(u8::is_ascii_digit)
                    .map(|byte| byte - b'0')
                    .collect();
                checks::luhn(&digits)
            })
            .unwrap_or_default();
        assert_eq!(told(&number), [("payment_card".to_owned(), number.clone())]);
        assert_eq!(told(&format!("card\n{number}\nend")).len(), 1);
        assert_eq!(told(&format!("0.{number}")).len(), 0, "a decimal");
        assert_eq!(told(&format!("{number}7")).len(), 0, "a longer number");
    }
}

#[test]
fn a_number_for_trials_is_told_only_beside_a_word_that_says_card() {
    let trial = ["4242", "4242", "4242", "4242"].join(" ");
    assert_eq!(
        names(&format!("in the sandbox use {trial} as it is")),
        [""; 0]
    );
    assert_eq!(names(&format!("credit card {trial}")), ["payment_card"]);
}

#[test]
fn an_account_number_has_the_length_of_its_country_and_a_remainder_of_one() {
    assert_eq!(names("DE89 3704 0044 0532 0130 00"), ["iban"]);
    assert_eq!(names("to GB29NWBK60161331926819."), ["iban"]);
    assert_eq!(names("NO9386011117947"), ["iban"]);
    assert_eq!(names("DE88 3704 0044 0532 0130 00"), [""; 0]);
    assert_eq!(names("DE89 3704 0044 0532 0130"), [""; 0]);
}

#[test]
fn what_is_said_to_be_something_else_is_no_number_of_that_kind() {
    for text in [
        "confirmed that order id 4035653393193716 is the one",
        "job id: 6011393373983892",
        "IT03 U030 6967 9310 0001 0375 251",
        "SM84 G030 6997 9350 0001 0081 673",
        "<input type=\"text\" name=\"barcode\" value=\"5515550237676136\">",
        "Reservation number: \"6258783973999052\"",
        "run id = 53693547",
        "{\"run_id\": \"964075239\"}",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
    let field = "<input name=\"card_no\" value=\"5515550237676136\">";
    assert_eq!(names(field), ["payment_card"]);
    for card in [
        "35=5354146722958099D2912101",
        "file=/var/log/pos/debug.log match=2498948369137133 action=quarantine",
    ] {
        assert_eq!(names(card), ["payment_card"], "{card}");
    }
    assert_eq!(names("35=5354146722958099E2912101"), [""; 0]);
    for card in [
        "Parameter: 4539148803436467",
        "Please confirm: 4539148803436467",
        "Error reading: 4539148803436467",
        "hostname=\"web1\" value=4539148803436467",
        "name=\"checkout\" card_value=4539148803436467",
        "<form name=\"pay\">card_value=4539148803436467",
        "PO12 VISA 4539 1488 0343 6467",
    ] {
        assert_eq!(names(card), ["payment_card"], "{card}");
    }
    assert_eq!(names("DEA number: AB2234665"), ["us_dea"]);
    assert_eq!(names("RUN No. 53693547"), ["cl_rut"]);
    assert_eq!(names("RUN: 53693547"), ["cl_rut"]);
    assert_eq!(names("to 002-191-629698582546-50"), ["pe_bank_account"]);
    assert_eq!(names("to 002-191-629698582546-51"), [""; 0]);
}

#[test]
fn one_check_digit_needs_a_word_and_two_do_not() {
    assert_eq!(names("NHS number 943 476 5919"), ["gb_nhs"]);
    assert_eq!(names("call 943 476 5919"), [""; 0]);
    assert_eq!(names("529.982.247-25"), ["br_cpf"]);
    assert_eq!(names("529.982.247-26"), [""; 0]);
    assert_eq!(names("DNI: 12345678Z"), ["es_dni"]);
    assert_eq!(names("DNI: 12345678A"), [""; 0]);
    assert_eq!(names("RSSMRA85T10A562S"), ["it_codice_fiscale"]);
    assert_eq!(names("131052-308T"), ["fi_hetu"]);
}

#[test]
fn a_finnish_code_of_any_century_is_told_behind_an_assignment() {
    for code in ["240703A417B", "090516B9022", "311299Y2155", "040794+088A"] {
        let text = format!("{{\"personal_id\": \"{code}\"}}");
        assert_eq!(told(&text), [("fi_hetu".to_owned(), code.to_owned())]);
        assert_eq!(names(&format!("henkil\u{f6}tunnus: {code}")), ["fi_hetu"]);
        assert_eq!(names(&format!("personal_id={code}7")), [""; 0], "longer");
    }
    for wrong in ["240703A418B", "241303A4170", "240703G417B", "2407"] {
        assert_eq!(names(&format!("personal_id={wrong}")), [""; 0], "{wrong}");
    }
}

#[test]
fn a_number_of_hong_kong_has_its_check_in_brackets() {
    for number in ["C514087(9)", "R730164[1]", "p640912(5)", "WX205931(0)"] {
        for (before, after) in [
            ("HKID: ", ""),
            ("\"HKID\": \"", "\", and more behind it"),
            ("HKID= \\\"", "\\\", and more behind it"),
        ] {
            assert_eq!(
                told(&format!("{before}{number}{after}")),
                [("hk_id".to_owned(), number.to_owned())]
            );
        }
    }
    for wrong in ["C514087(8)", "C514087(9]", "C51408(9)", "ABC514087(9)", "C"] {
        assert_eq!(names(&format!("HKID: {wrong}")), [""; 0], "{wrong}");
    }
}

#[test]
fn hits_behind_assignments_rise_with_the_others() {
    let account = "DE89370400440532013000";
    let text = format!("a: {account}, \"personal_id\": \"240703A417B\", {account}");
    assert_eq!(names(&text), ["iban", "fi_hetu", "iban"]);
}

#[test]
fn numbers_of_france_have_departments_of_corsica_too() {
    for number in [
        "185072A12345665",
        "2 91 11 2B 004 217 32",
        "1 85 07 2A 123 456 65",
    ] {
        let found = told(&format!("NIR {number}, known"));
        assert_eq!(found, [("fr_nir".to_owned(), number.to_owned())]);
    }
    assert_eq!(names("NIR 185072A12345666"), [""; 0]);
    assert_eq!(names("NIR 185072C12345665"), [""; 0]);
}

#[test]
fn more_numbers_of_europe_are_told_beside_their_names() {
    for (text, name) in [
        ("KVNR M407193524", "de_health_insurance"),
        (
            "Rentenversicherungsnummer: 15070649M105",
            "de_pension_insurance",
        ),
        ("num\u{e9}ro fiscal 30 23 217 601 054", "fr_tax_number"),
        ("Partita IVA 07345610237", "it_vat_number"),
        ("dav\u{10d}na \u{161}tevilka: 83726144", "si_tax_number"),
        ("rodn\u{e9} \u{10d}\u{ed}slo 485611/123", "cz_birth_number"),
        ("RUT 10000013-K", "cl_rut"),
        ("15-07-85-41285", "no_fodselsnummer"),
        ("SVNR: 3006 23 08 71", "at_social_insurance"),
        ("personalNumericCode=2840612401238", "ro_cnp"),
        (
            "<label>Personal numeric code</label><input value=\"2840612401238\"",
            "ro_cnp",
        ),
    ] {
        assert_eq!(names(text), [name], "{text}");
        let bare = text.rsplit([' ', '"', '=']).find(|part| !part.is_empty());
        let bare = bare.unwrap_or_default();
        if text != bare {
            assert_eq!(names(&format!("item {bare}")), [""; 0], "{text}");
        }
    }
    for text in [
        "KVNR M407193525",
        "Rentenversicherungsnummer: 15070649M106",
        "Bestellnummer 4838102305943114 wurde versandt",
        "Auftragsnummer 4838102305943114",
        "num\u{e9}ro fiscal 3023217601055",
        "Partita IVA 07345610238",
        "rodn\u{e9} \u{10d}\u{ed}slo 485699/123",
        "RUT 10000014-K",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn an_account_has_letters_where_its_country_has_them_and_no_card_in_it() {
    assert_eq!(names("NL91ABNA0417164300"), ["iban"]);
    assert_eq!(names("NL95 5182 0B46 0329 17"), [""; 0]);
    assert_eq!(names("RS02 4220 0395 1706 2844 41"), [""; 0]);
    assert_eq!(names("4220 0395 1706 2844"), ["payment_card"]);
}

#[test]
fn an_account_of_letters_in_groups_of_four_needs_no_row_of_digits() {
    for account in [
        "GT20 M0BT Z2GI AK7V HI2K Z0MH 0TG6",
        "GT33-ZF3V-UQYY-PC6E-GMJD-QD4E-ZFX4",
        "PK97RGKWBEOR8OCF9RCXJGIS",
    ] {
        let found = told(&format!("pay {account} now"));
        assert_eq!(found, [("iban".to_owned(), account.to_owned())]);
    }
    // Few digits in groups that are not of four, or among small letters, may be words.
    assert_eq!(names("PK97 RGKW BEOR8 OCF9 RCXJ GIS"), [""; 0]);
    assert_eq!(names("pk97rgkwbeor8ocf9rcxjgis"), [""; 0]);
    assert_eq!(names("GT21 M0BT Z2GI AK7V HI2K Z0MH 0TG6"), [""; 0]);
    assert_eq!(names("PK96RGKWBEOR8OCF9RCXJGIS"), [""; 0]);
}

#[test]
fn words_of_a_name_are_joined_as_names_in_source_are() {
    for text in [
        "social_security_number: 524-96-4717",
        "social-security: 524-96-4717",
        "{\"socialSecurityNumber\": \"524-96-4717\"}",
    ] {
        assert_eq!(names(text), ["us_ssn"], "{text}");
    }
    assert_eq!(names("personas_kods=051288-19369"), ["lv_personal_code"]);
    // `sa id` without its space is a word of its own.
    assert_eq!(names("sa_id 8001015009087"), ["za_id"]);
    assert_eq!(names("said 8001015009087"), [""; 0]);
}

#[test]
fn a_number_that_ends_in_a_time_a_barcode_and_a_part_of_a_word_are_nobodys() {
    for text in [
        "upload_412345-1763806422120.jpg",
        "412345 1763806422138",
        "{\"ean\":\"5901234120081\",\"stock\":\"10/12\"}",
        "5901234120081 | 3/12",
        "Mini Notebook, SKU LR482913B",
        "mini-notebook LR482913B",
        "mini numbers: LR482913B",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
    assert_eq!(names("622848 0123456789015"), ["payment_card"]);
    assert_eq!(names("myNiNumber = LR482913B"), ["gb_nino"]);
}

#[test]
fn what_was_redacted_announces_nothing() {
    assert_eq!(names("number [redacted:gb_nino], AB123456C"), [""; 0]);
    assert_eq!(names("number [redacted:us_ssn] 524-96-4717"), [""; 0]);
    assert_eq!(names("nino [redacted:gb_nino], AB123456C"), ["gb_nino"]);
}

#[test]
fn a_number_for_trials_is_told_where_it_is_all_of_a_string() {
    let trial = ["4242"; 4].concat();
    // As a block of text in a result is looked at.
    let block = |text: &str| format!("content: type: text\ntext: {text}\nisError: false\n");
    assert_eq!(names(&block(&trial)), ["payment_card"]);
    assert_eq!(names(&block(&format!("try {trial}"))), [""; 0]);
    assert_eq!(names(&block(&format!("{trial} works"))), [""; 0]);
}

#[test]
fn an_account_stands_in_a_field_of_a_statement() {
    let text = ":86:166?20RENT?30CREDDE2LXXX?31DE89370400440532013000?32A PERSON";
    let account = "DE89370400440532013000";
    assert_eq!(told(text), [("iban".to_owned(), account.to_owned())]);
    assert_eq!(names("?31FK24PF862298957590?32"), ["iban"]);
    assert_eq!(names("?31DE88370400440532013000?32"), [""; 0]);
    assert_eq!(names("x31DE89370400440532013000"), [""; 0]);
}

#[test]
fn a_card_that_needs_a_word_stands_on_a_track_and_in_a_message_too() {
    for text in [
        ";36701210370053=27122011234567890?",
        "F2=36701210370053 F3=000000",
        "DE002: 36701210370053",
        "- 36701210370053\n- 05/31\n",
        "\u{e1a}\u{e31}\u{e15}\u{e23}36701210370053\u{e04}",
        "numer karty 36701210370053",
        "\u{5db}\u{5e8}\u{5d8}\u{5d9}\u{5e1}: 36701210370053",
    ] {
        assert_eq!(names(text), ["payment_card"], "{text}");
    }
    for text in [
        ";36701210370053=x",
        "GF2=36701210370053 F3=000000",
        "F3=36701210370053",
        "item 36701210370053",
        "Jakarta 36701210370053",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn the_last_digit_of_an_icelandic_number_says_the_century() {
    assert_eq!(names("kennitala 120174-3399"), ["is_kennitala"]);
    assert_eq!(names("kennitala 120174-3395"), [""; 0]);
}

#[test]
fn words_in_other_scripts_stand_as_many_letters_away() {
    let name = "\u{447}\u{435}\u{440}\u{43d}\u{43e}\u{432}\u{430} ".repeat(5);
    let inn = "\u{438}\u{43d}\u{43d}";
    assert_eq!(names(&format!("{inn} {name}500100732259")), ["ru_inn"]);
    assert_eq!(names(&format!("{inn} {name}{name}500100732259")), [""; 0]);
    assert_eq!(
        names("148-363-88-37 to Numer identyfikacji podatkowej"),
        ["pl_nip"]
    );
}

#[test]
fn a_number_of_a_device_is_nobodys_unless_a_word_says_whose() {
    assert_eq!(names("208106363818480"), ["fr_nir"]);
    assert_eq!(names("IMSI 208106363818480"), [""; 0]);
    assert_eq!(names("{\"imsi\": \"208106363818480\"}"), [""; 0]);
}

#[test]
fn british_numbers_are_told_beside_their_name() {
    for number in ["YT407770C", "WP 27 44 65 C"] {
        let found = told(&format!("NI number: {number}, known"));
        assert_eq!(found, [("gb_nino".to_owned(), number.to_owned())]);
        assert_eq!(names(&format!("item {number}")), [""; 0], "{number}");
    }
    for wrong in [
        "BG407770C",
        "YT407770E",
        "YT407770C1",
        "XYT407770C",
        "WP 27 4465 C",
        "WP274465 C",
        "XWP 27 44 65 C",
    ] {
        assert_eq!(names(&format!("NI number: {wrong}")), [""; 0], "{wrong}");
    }
}

#[test]
fn more_numbers_of_companies_and_accounts_are_told_beside_their_names() {
    for (text, name) in [
        ("CIF: B47065230", "es_cif"),
        ("CIF: Q2818002D", "es_cif"),
        ("CLABE 072646348279281885", "mx_clabe"),
        ("personas kods 32579461005", "lv_personal_code"),
        ("matricule: 1966021832598", "lu_matricule"),
        ("PIS 12056412545", "br_pis"),
    ] {
        assert_eq!(names(text), [name], "{text}");
        let bare = text.rsplit(' ').next().unwrap_or_default();
        assert_eq!(names(&format!("item {bare}")), [""; 0], "{text}");
    }
    for text in [
        "CIF: B47065231",
        "CIF: Q28180024",
        "CLABE 072646348279281886",
        "matricule: 1966021832597",
        "PIS 12056412546",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn a_card_is_known_by_the_month_behind_it_and_where_it_is_all_of_a_text() {
    let trial = ["4242"; 4].concat();
    assert_eq!(names(&trial), ["payment_card"]);
    assert_eq!(names(&format!("\"{trial}\"\n")), ["payment_card"]);
    for month in ["09/28", "9/2028", "12/27"] {
        let text = format!("| J. Doe | {trial} | {month} |");
        assert_eq!(names(&text), ["payment_card"], "{text}");
    }
    for date in ["13/28", "1/09/28", "09/28/26", "09/280", "9/1928"] {
        let text = format!("| J. Doe | {trial} | {date} |");
        assert_eq!(names(&text), [""; 0], "{text}");
    }
    assert_eq!(names("6759 6355 8425 5926 65"), ["payment_card"]);
    assert_eq!(names("card 5018-7974-4875"), ["payment_card"]);
    assert_eq!(names("item 5018-7974-4875"), [""; 0]);
    assert_eq!(names("card 650002 9446403991123"), ["payment_card"]);
    assert_eq!(names("650002 9446403991123"), [""; 0]);
}

#[test]
fn a_function_is_no_name_of_a_number() {
    assert_eq!(names("SIN 518307244"), ["ca_sin"]);
    assert_eq!(names("cos(x) + sin(y) + 518307244"), [""; 0]);
    assert_eq!(names("ssn : 111-22-3333"), [""; 0]);
}

#[test]
fn times_versions_and_addresses_are_no_numbers_of_persons() {
    for text in [
        "2026-01-05 08:12:44.123456 took 1700000123456 ns",
        "10.0.255.255 192.168.100.200",
        "tel. +49 30 9018 2000",
        "1234567890123456789",
        "12 34 56 78 90 12 34 56 78 90",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}

#[test]
fn what_a_sentence_calls_something_else_is_no_card() {
    for name in [
        "the tracking number is",
        "the log sequence number is",
        "the shipment id is",
    ] {
        assert_eq!(
            names(&format!("{name} 5145593685752387")),
            [""; 0],
            "{name}"
        );
    }
    for name in [
        "the card number is",
        "the number is",
        "payload =",
        "field_7:",
        "order_id \"12\"",
        "ccn:",
    ] {
        let text = format!("{name} 5143707450955221");
        assert_eq!(names(&text), ["payment_card"], "{name}");
    }
}

#[test]
fn a_card_or_an_account_goes_on_in_the_next_line_where_text_is_wrapped() {
    for (text, number, name) in [
        (
            "card 4803 2026\n2702 7397, please",
            "4803 2026\n2702 7397",
            "payment_card",
        ),
        (
            "charge 3782 406281\n44574 exp 07/30",
            "3782 406281\n44574",
            "payment_card",
        ),
        (
            "pay to DE37 3704 0044\n2942 3921 56, now",
            "DE37 3704 0044\n2942 3921 56",
            "iban",
        ),
        (
            "pay to IE50 IPBS 4649\n5122 3524 07",
            "IE50 IPBS 4649\n5122 3524 07",
            "iban",
        ),
    ] {
        assert_eq!(told(text), [(name.to_owned(), number.to_owned())], "{text}");
    }
    for text in [
        "4803 2026\n2702 7397\n",
        "card\n4803 2026\n2702 7397\n",
        "call 4803 2026\n2702 7397, please",
        "Phones: 5123 4567\n9876 5439",
        "card 4803 2026\n2702 7398, please",
        "card 4803 2026\n2702 7397 1234",
        "card 4803 2026\n\n2702 7397, please",
        "card 4803 2026\n27027397, please",
        "pay to DE37 3704 0044\n2942 3921 57, now",
        "pay to DE37 3704\n0044 2942\n3921 56, now",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
    let found = told("card 4803 2026 2702 7397\n107 Main St");
    let whole = ("payment_card".to_owned(), "4803 2026 2702 7397".to_owned());
    assert_eq!(found, [whole]);
}

#[test]
fn numbers_are_told_as_others_write_them() {
    for (text, number, name) in [
        (
            "NIR: 1 55 06 31 237 451/11",
            "1 55 06 31 237 451/11",
            "fr_nir",
        ),
        ("nif_iva=ES30314516X", "30314516X", "es_dni"),
        ("NIF: M-8655424-H", "M-8655424-H", "es_dni"),
        ("nif_titular: L1025146J", "L1025146J", "es_dni"),
        (
            "moje DI\u{10c} je CZ5710261744",
            "5710261744",
            "cz_birth_number",
        ),
        ("vat_afm: \"EL004810755\"", "004810755", "gr_afm"),
        ("PDV ID broj: HR43717246672", "43717246672", "hr_oib"),
        ("NUM_IVA=PT204031010", "204031010", "pt_nif"),
        ("id_za_ddv: SI66166543", "66166543", "si_tax_number"),
        (
            "national_insurance_number: LW-79-21-08-D",
            "LW-79-21-08-D",
            "gb_nino",
        ),
        ("KVNR: E469 955 747", "E469 955 747", "de_health_insurance"),
        ("RUC: 10 47123707 3", "10 47123707 3", "pe_ruc"),
        ("C.U.I.T. 24.28776501.7", "24.28776501.7", "ar_cuit"),
        ("Steuer-IdNr. 30-692-048-152", "30-692-048-152", "de_tax_id"),
        ("ahvnr='7567526566708'", "7567526566708", "ch_ahv"),
        ("atin: 928-93-2153", "928-93-2153", "us_atin"),
        ("pan_no: ZAXPN2147A", "ZAXPN2147A", "in_pan"),
        ("PAN No.    YFIPP3527P", "YFIPP3527P", "in_pan"),
        ("the PAN on file (DHFPM4938X) is", "DHFPM4938X", "in_pan"),
        (
            "Versicherungsnummer (RV): 38160259T993",
            "38160259T993",
            "de_pension_insurance",
        ),
        (
            "Permanent Account Number: EFSPK5271S",
            "EFSPK5271S",
            "in_pan",
        ),
        ("civil_number: 272042967286", "272042967286", "kw_civil_id"),
        ("UI number: \"G953311991\"", "G953311991", "tw_id"),
    ] {
        assert_eq!(told(text), [(name.to_owned(), number.to_owned())], "{text}");
    }
    for text in [
        "dic[\"a\"] = 120315482",
        "dic = {1712150011: 1}",
        "dic CZ5710261745",
        "indices CZ5710261744",
        "N Ivanov 204031010",
        "UI notification A123456789",
        "frying pan, SKU TEFPA2801C",
        "nif_iva=ES30314517X",
        "nif_iva=FR30314516X",
        "nif_titular: L1025147J",
        "vat_afm: \"DE004810755\"",
        "national_insurance_number: LW-79-21/08-D",
        "national_insurance_number: LW-79-21-08-E",
        "KVNR: E469 955 748",
        "atin: 928-92-2153",
        "pan_no: ZAXCN2147A",
        "pan_no: ZAXPN0000A",
        "pan_no: ZAXPN2147AB",
        "part: ZAXPN2147A",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
}
