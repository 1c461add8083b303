//! What national numbers look like and how their check digits are found: a table, one entry a kind.
//!
//! Guarantees: a check looks at digits only and never fails for a number of one of its shapes. Deliberately absent: where in a
//! text a number stands.

use unicode_normalization::UnicodeNormalization;

use super::{
    accounts::ACCOUNTS, americas::AMERICAS, europe::EUROPE, further::FURTHER, old_world::OLD_WORLD,
    people::PEOPLE, rule::Rule, world::WORLD,
};

/// The other ways in which a word is written: in capitals, without accents, and as names in source have it.
pub(super) fn other_ways(word: &str) -> impl Iterator<Item = String> + use<> {
    let mut ways = in_other_letters(word);
    let joined = ways.iter().map(String::as_str).chain([word]);
    let joined: Vec<_> = joined.flat_map(joined_ways).collect();
    ways.extend(joined);
    ways.extend(dotted(word));
    ways.into_iter()
}

/// An abbreviation with a dot behind each letter: `r.u.c.`
fn dotted(word: &str) -> Option<String> {
    // Letters of other scripts are compared as they are.
    let small = |letter: char| match letter.is_ascii() {
        true => letter.is_ascii_lowercase(),
        false => letter.is_lowercase() || letter.is_uppercase(),
    };
    let short = (3..=5).contains(&word.chars().count()) && word.chars().all(small);
    short.then(|| word.chars().flat_map(|letter| [letter, '.']).collect())
}

/// A word of more than one as names in source have it: with an underscore, a dash or nothing where prose has a space.
fn joined_ways(word: &str) -> impl Iterator<Item = String> {
    let joints: &[&str] = match (word.contains(' '), word.len()) {
        (false, _) => &[],
        // Short ones would be other words: `sa id`.
        (true, ..8) => &["_", "-"],
        (true, _) => &["_", "-", ""],
    };
    joints.iter().map(|joint| word.replace(' ', joint))
}

/// A word with letters beyond ASCII, which are compared as they are, in capitals, with one, and without accents.
fn in_other_letters(word: &str) -> Vec<String> {
    if word.is_ascii() {
        return Vec::new();
    }
    let mut letters = word.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let plain: String = word.nfd().filter(char::is_ascii).collect();
    let mut all = vec![
        word.to_uppercase(),
        word.to_lowercase(),
        first + letters.as_str(),
    ];
    // What has no plain letters at all is another script.
    let letters = plain.chars().filter(char::is_ascii_alphabetic).count();
    // `r.c.` is the beginning of other abbreviations.
    let says = letters > 2 || !plain.contains('.');
    if says && letters * 2 > word.chars().count() {
        all.push(plain);
    }
    all.sort();
    all.dedup();
    all.retain(|other| other != word);
    all
}

/// The rules by where they are of.
const TABLES: [&[Rule]; 7] = [
    EUROPE, WORLD, FURTHER, AMERICAS, OLD_WORLD, ACCOUNTS, PEOPLE,
];

/// Every rule, in the order of their numbers.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    TABLES.iter().copied().flatten()
}

/// How many there are.
pub(super) const COUNT: usize = {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

/// The rule of this number.
pub(super) fn nth(mut at: usize) -> &'static Rule {
    for table in TABLES {
        match table.get(at) {
            Some(rule) => return rule,
            None => at -= table.len(),
        }
    }
    &EUROPE[0]
}

#[cfg(test)]
mod tests {
    use super::super::tests::names;

    /// Numbers made up, with a check digit that holds and with one that does not, and whose they are.
    const NUMBERS: &[(&str, &str, &str)] = &[
        ("CNH: 49350500142", "CNH: 49350500143", "br_cnh"),
        (
            "titulo eleitoral: 228860410159",
            "titulo eleitoral: 228860410150",
            "br_titulo_eleitor",
        ),
        // A remainder of zero is a one in Sao Paulo, in either place.
        (
            "titulo eleitoral: 106644440116",
            "titulo eleitoral: 106644440108",
            "br_titulo_eleitor",
        ),
        (
            "titulo eleitoral: 106644420141",
            "titulo eleitoral: 106644420140",
            "br_titulo_eleitor",
        ),
        (
            "titulo eleitoral: 106644440302",
            "titulo eleitoral: 106644440311",
            "br_titulo_eleitor",
        ),
        ("PHN: 9895055064", "PHN: 9895055065", "ca_health_number"),
        (
            "RVNR: 65 120774 J 657",
            "RVNR: 65 120774 J 658",
            "de_pension_insurance",
        ),
        ("IDNP: 2903592595515", "IDNP: 2903592595516", "md_idnp"),
        (
            "kontonummer: 96751587276",
            "kontonummer: 96751587277",
            "no_account_number",
        ),
        (
            "Cartao de Cidadao: 039071155ZX2",
            "Cartao de Cidadao: 039071155ZX3",
            "pt_citizen_card",
        ),
        (
            "CCC: 71977489122041908269",
            "CCC: 71977489122041908260",
            "es_ccc",
        ),
        ("RIF: V374293156", "RIF: V374293157", "ve_rif"),
        ("DUI: 523158592", "DUI: 523158593", "sv_dui"),
        (
            "Documento \u{da}nico de Identidad: 01267580-3",
            "Documento \u{da}nico de Identidad: 01267580-4",
            "sv_dui",
        ),
        ("cprnr: 0106822670", "cprnr: 0106822671", "dk_cpr"),
        (
            "Civil ID: 356070621694",
            "Civil ID: 356070621695",
            "kw_civil_id",
        ),
        ("VKN: 9494364085", "VKN: 9494364086", "tr_vkn"),
        (
            "LNCh: 9981377772",
            "LNCh: 9981377773",
            "bg_foreigner_number",
        ),
        (
            "VID: 2881725524432073",
            "VID: 2881725524432074",
            "in_virtual_id",
        ),
        (
            "CBU: 1628685472838387621012",
            "CBU: 1628685472838387621013",
            "ar_cbu",
        ),
    ];

    #[test]
    fn words_are_known_in_capitals_and_without_accents() {
        for text in [
            "\u{416}\u{421}\u{41d} 910202416358",
            "numero fiscal 0585292314068",
            "NUM\u{c9}RO FISCAL 0585292314068",
            "mati\u{10d}ni broj: 2507960505802",
            "<maticni_broj>2507960505802</maticni_broj>",
            "R.U.C.: 0609110333001",
        ] {
            assert_eq!(names(text).len(), 1, "{text}");
        }
        assert_eq!(names("910202416358 \u{436}\u{443}\u{43a}"), [""; 0]);
    }

    #[test]
    fn numbers_of_more_countries_hold_their_check_digits_beside_a_word() {
        for (text, wrong, name) in NUMBERS {
            assert_eq!(names(text), [*name], "{text}");
            assert_eq!(names(wrong), [""; 0], "{wrong}");
        }
        assert_eq!(names("CUIT: 00000000000"), [""; 0]);
    }
}
