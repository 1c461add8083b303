//! Tables of every kind, and what stands around them.

use super::super::tests::names;

/// More than any look around a number reaches.
const LONG: &str =
    "Maria de los Angeles Fernandez de la Torre y Montenegro, Calle Mayor de Alcala de Henares";

/// Tables with three numbers below each other, of which only the head of the column says what they are.
fn tables() -> Vec<String> {
    let rows = |row: &str| {
        let numbers = ["1234563218", "1060000062", "5260001246"];
        numbers.map(|number| row.replace("{n}", number)).concat()
    };
    [
        ("id,nip,note\n", "7,{n},\"{long}\"\n", ""),
        ("note;nip\n", "{long};\"{n}\"\n", ""),
        ("NIP\tnote\tx\n", "{n}\t{long}\t\n", ""),
        ("A list, as of today:\nnote,nip\n", "\"{long}\",{n}\n", ""),
        (
            "| # | NIP | note |\n|---|:-:|---|\n",
            "| 7 | {n} | {long} |\n",
            "",
        ),
        (
            " note | nip\n------+-----\n",
            " {long} | {n}\n",
            "(3 rows)\n",
        ),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n note,nip\n",
            "+'{long}',{n}\n",
            "",
        ),
        (
            "\u{2502} note \u{2502} nip \u{2502}\n\u{251c}\u{2500}\u{253c}\u{2500}\u{2524}\n",
            "\u{2502} {long} \u{2502} {n} \u{2502}\n",
            "",
        ),
        (
            "[\n  [\n    \"note\",\n    \"NIP\"\n  ],\n",
            "  [\n    \"{long}\",\n    \"{n}\"\n  ],\n",
            "  []\n]",
        ),
        ("||note||NIP||\n", "|{long}|{n}|\n", ""),
        ("note|nip\n", "|{n}\n{long}|\n", ""),
        (
            "{\"columns\": [0, 1], \"data\": [[\"note\", \"NIP\"], ",
            "[\"{long}\", \"{n}\"], ",
            "[]]}",
        ),
        ("|===\n|note |NIP\n\n", "|{long} |{n}\n", "|===\n"),
        ("|===\n|note |NIP |x\n\n", "|{long}\n|{n}\n|y\n\n", "|===\n"),
        (
            "id note nip        x\n-- ---- ---------- -\n",
            "7  a    {n} {long}\n",
            "",
        ),
        (
            "COPY x (id, nip, note) FROM stdin;\n",
            "7\t{n}\t{long}\n",
            "\\.\n",
        ),
        ("NIP         NOTE\n----------------\n", "{n}  {long}\n", ""),
        (
            "ID      Osoba       NIP          Uwaga\n",
            "7       Ja\u{17c}d\u{17c}ewska  {n}   {long}\n",
            "",
        ),
        (
            "<table><tr><th>note</th><th>NIP</th></tr>\n",
            "<tr><td>{long}</td><td class=\"x\">{n}</td></tr>\n",
            "</table>",
        ),
        (
            "INSERT INTO people (note, `nip`) VALUES\n",
            "  ('{long}', '{n}'),\n",
            "  ('', '');\n",
        ),
        ("[[\"note\", \"NIP\"], ", "[\"{long}\", \"{n}\"], ", "[]]"),
        (
            "{\"columns\": [\"note\", \"NIP\"], \"rows\": [[\"a\", \"b c\"], ",
            "[\"{long}\", \"{n}\"], ",
            "[]]}",
        ),
    ]
    .map(|(head, row, foot)| [head, &rows(&row.replace("{long}", LONG)), foot].concat())
    .into()
}

#[test]
fn the_head_of_a_column_says_what_its_numbers_are() {
    for table in tables() {
        assert_eq!(names(&table), ["pl_nip"; 3], "{table}");
        let other = table.replace("nip", "qty").replace("NIP", "QTY");
        assert_eq!(names(&other), [""; 0], "{other}");
    }
}

#[test]
fn what_begins_in_the_middle_of_a_line_or_is_cut_there_is_no_table() {
    let text = r#"[["note","NIP"],["a","1234563218"]], 1060000062, x"#;
    // The word stands near enough to the second one.
    assert_eq!(names(text).len(), 2, "{text}");
    for more in 4080..4100 {
        let head = "a".repeat(more);
        let text = format!("<table><tr><th>{head}<th>NIP</tr><tr><td>1234563218</td></tr>");
        assert_eq!(names(&text), ["pl_nip"], "{more}");
    }
}

#[test]
fn three_bars_part_two_cells_once() {
    assert_eq!(names("|||<table>|===\n1234563218  ||1234563218"), [""; 0]);
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_odd(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "1234563218", "V14154171-0", "4929123456789015", "4929 1234 5678 9019 ", "\n", "\n\n", ",", ";", "\t", "|",
                "||", "  ", " ", "\"", "'", "[", "[[", "]", "]]", "(", ")", "{", "<table>", "<tr>", "<td>", "<th>", "</tr", "<t",
                "VALUES ", "(nip) VALUES (", "----", "-- --", "|===\n", "\"columns\": [", "COPY x (nip) FROM stdin;\n", "nip",
                "order", "x=", "\u{2502}", "\u{2500}", "+", "a",
            ]),
            0..40,
        ),
    ) {
        names(&pieces.concat());
    }
}

#[test]
fn what_follows_a_table_is_none_of_its_rows() {
    for table in tables() {
        for next in ["\n\n{n}", "\n\nid,qty\n7,{n}", "\n{n} is none of them"] {
            let text = table.clone() + &next.replace("{n}", "7811767696");
            assert_eq!(names(&text).len(), 3, "{text}");
        }
    }
}

#[test]
fn a_table_may_come_behind_another_or_behind_lines_of_text() {
    for two in tables().windows(2) {
        let text = two.join("\n\n");
        assert_eq!(names(&text).len(), 6, "{text}");
    }
    let all = tables().join("\n\n");
    assert_eq!(names(&all).len(), 3 * tables().len());
    let text = format!("1234567, 89012345, and more\n\n{all}");
    assert_eq!(names(&text).len(), 3 * tables().len());
}

#[test]
fn a_card_is_none_where_a_program_calls_it_something_else() {
    let card = "4929123456789015";
    for text in [
        "{n}",
        "card_number={n}",
        "\"pan\": \"{n}\"",
        "\"text\": \"{n}\"",
        "\"list\": [\"{n}\"]",
        "list: {n}",
        "Paid with: {n}",
        "<td>{n}</td>",
        "id,card\n7,{n}\n",
    ] {
        let text = text.replace("{n}", card);
        assert_eq!(names(&text), ["payment_card"], "{text}");
    }
    for text in [
        "frame={n}",
        "\"requestId\": \"{n}\", \"card\": null",
        "job_id {n} queued",
        "Order number: {n}",
        "X-Campaign: {n}",
        "<frame>{n}</frame>",
        "id,order_no,card\n7,{n},none\n",
    ] {
        let text = text.replace("{n}", card);
        assert_eq!(names(&text), [""; 0], "{text}");
    }
    assert_eq!(names("frame=4929 1234 5678 9015"), ["payment_card"]);
}

#[test]
fn a_table_in_a_string_begins_behind_the_name_of_its_member() {
    // What stands before the first name moves the second as far as over the numbers of the third.
    let row = |name: &str, nip: &str, other: &str| format!("{name:<64}{nip:<12}{other}\n");
    let rows = [
        row("a", "1234563218", "7811767696"),
        row("b", "1060000062", "7811767696"),
        row("c", "5260001246", "7811767696"),
    ]
    .concat();
    let head = row("note", "NIP", "qty");
    for before in ["", "type: text\nstructured: ", "structured: "] {
        let text = format!("{before}{head}{rows}");
        assert_eq!(names(&text), ["pl_nip"; 3], "{text}");
    }
    let text = format!("type: text\n{}{rows}", row("note", "qty", "sum"));
    assert_eq!(names(&text), [""; 0], "{text}");
}

#[test]
fn the_names_of_a_table_in_a_string_stand_above_their_columns_however_they_are_set() {
    let blanks = " ".repeat(60);
    for (head, row) in [
        (
            format!("   {blanks}note         nip  qty\n"),
            format!("0  {blanks}J\u{fc}rgen  {{n}}    4\n"),
        ),
        (
            format!(
                "id  note{blanks}  nip         qty\n--  ----{}  ----------  ---\n",
                "-".repeat(60)
            ),
            format!("7   a   {blanks}  {{n}}  4\n"),
        ),
        ("||note||NIP||\n".to_owned(), format!("|{LONG}|{{n}}|\n")),
    ] {
        let rows = ["1234563218", "1060000062", "5260001246"].map(|n| row.replace("{n}", n));
        for before in ["", "text: "] {
            let text = format!("{before}{head}{}\nisError: false\n", rows.concat());
            assert_eq!(names(&text), ["pl_nip"; 3], "{text}");
            let other = text.replace("nip", "qty").replace("NIP", "QTY");
            assert_eq!(names(&other), [""; 0], "{other}");
        }
    }
}
