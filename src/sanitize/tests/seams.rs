//! Texts that are read one after the other: whatever is cut in pieces is found, however many there are and whatever is between.

use super::*;

/// What becomes of the messages of events that follow one another.
fn told(sanitizer: &Sanitizer, messages: &[&str]) -> Vec<String> {
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let mut tail = Tail::default();
    let mut after = |message: &&str| {
        let event = format!(r#"{{"message":{}}}"#, Json::string(message).as_str());
        match sanitizer.look_after(&json(&event), &subject, Some(&mut tail)) {
            Verdict::Clean | Verdict::Flagged(_) => (*message).to_owned(),
            Verdict::Changed(value, _) => {
                let message = value.root().member("message").unwrap();
                message.as_str().unwrap().into_owned()
            }
            Verdict::Blocked(blocked) => panic!("{blocked:?}"),
        }
    };
    messages.iter().map(&mut after).collect()
}

fn standard() -> Sanitizer {
    let mut rules = Rules::default();
    rules.budget.base = std::time::Duration::from_secs(60);
    Sanitizer::standard(rules, Findings::new(), OwnCredentials::new())
}

#[test]
fn what_lies_in_many_events_or_around_an_empty_one_is_cut_short() {
    let gone = "[redacted:test_key]";
    for pieces in [
        &["a KEY12", "", "345678 b"][..],
        &["a KEY12", "", "", "345678 b"],
        &["a K", "EY1", "2345", "678 b"],
        &["a KEY", "", "123", "", "45678 b"],
        &["", "KEY1", "2345678 b"],
        &["a K", "E", "Y", "1", "2", "3", "4", "5", "6", "7", "8 b"],
    ] {
        let (last, before) = pieces.split_last().unwrap();
        let mut expected: Vec<_> = before.iter().map(|piece| (*piece).to_owned()).collect();
        expected.push(format!("{gone} b"));
        assert!(last.ends_with(" b"));
        assert_eq!(told(&sanitizer(), pieces), expected, "{pieces:?}");
    }
    // What was taken out is not put together again, and what comes behind it is read as what it is.
    assert_eq!(
        told(&sanitizer(), &["KEY1", "2345678", "KEY12", "345678 b"]),
        ["KEY1", gone, "KEY12", &format!("{gone} b")]
    );
}

#[test]
fn the_end_of_what_came_before_is_kept_and_no_more_however_many_characters_are_of_several_bytes() {
    let gone = "[redacted:test_key]";
    for between in [500, 504, 505, 511, 512, 513, 2_000] {
        let long = format!("{}KEY", "é".repeat(between));
        let told = told(&sanitizer(), &[&long, "1234", "5678 b"]);
        assert_eq!(told[2], format!("{gone} b"), "{between}");
    }
}

#[test]
fn the_last_piece_and_what_follows_it_are_read_by_themselves_too() {
    let key = ["AK", "IAQYLPMN5HHHFPZAM2"].concat();
    let gone = "[redacted:aws_access_key_id]";
    let (left, right) = key.split_at(9);
    // A word before it, in an event of its own, hides where the key begins.
    for pieces in [
        &["so", left, right][..],
        &["so", "", left, "", right],
        &["see", "this", left, right],
    ] {
        let told = told(&standard(), pieces);
        assert_eq!(told.last().unwrap(), gone, "{pieces:?}: {told:?}");
    }
    // The same of blocks, where an empty one is between.
    let texts = ["so", left, "", right, "and"].map(|text| format!(r#"{{"text":"{text}"}}"#));
    let value = json(&format!("[{}]", texts.join(",")));
    let actions = Actions::default();
    let subject = Subject::new(Direction::Results, &actions, &[]);
    let Verdict::Changed(value, _) = standard().look(&value, &subject) else {
        panic!()
    };
    assert!(!value.as_str().contains(right), "{}", value.as_str());
}

#[test]
fn numbers_that_count_up_are_no_card_together() {
    // Their digits come to the number of a card: four numbers of an order each, and one of eight in two halves.
    let counted = ["4111", "1111", "1111", "1111"];
    assert_eq!(told(&standard(), &counted), counted);
    let halves = told(&standard(), &["4111 1111", " 1111 1111"]);
    assert!(halves[1].starts_with("[redacted:"), "{halves:?}");
}

#[test]
fn ids_that_count_up_in_the_data_of_an_error_are_no_card_together() {
    let error = json(r#"{"message":"missing","data":{"ids":["40012348","40012349","40012350"]}}"#);
    let actions = Actions::default();
    let subject = Subject {
        blocks: Blocks::All,
        ..Subject::new(Direction::Results, &actions, &[])
    };
    assert!(matches!(standard().look(&error, &subject), Verdict::Clean));
}
