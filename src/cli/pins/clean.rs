//! Definitions and how they differ, without the credentials in them.
//!
//! Guarantees: what differs in what is not shown is told from what nobody knows; a secret that is known by what stands beside it is
//! looked for in the whole definition. Deliberately absent: what is a credential, which `sanitize` says.

use crate::{
    app,
    config::Plan,
    findings::Findings,
    json::{Json, Kind, Node},
    pins::Difference,
    protocol::meta,
    sanitize::{OwnCredentials, Sanitizer, Scrubber, WITHHELD},
};

/// Takes credentials out of what servers wrote before it is shown (SECURITY AUD-8, 10).
pub(super) struct Clean(Scrubber);

/// One place where a definition differs, as it is shown.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) before: Option<Json>,
    pub(super) after: Option<Json>,
    pub(super) shown: Shown,
}

/// How much of a difference is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// All but credentials.
    Seen,
    /// Both look the same: what they differ in is not shown.
    Alike,
    /// Nothing of one of them at least: nobody knows what is in it.
    Withheld,
}

/// A definition, and what is shown of it.
pub(super) struct Whole<'a> {
    text: &'a Json,
    clean: Json,
}

impl Clean {
    pub(super) fn of(plan: &Plan) -> Self {
        let own = OwnCredentials::new();
        own.hold(app::credentials(plan));
        let rules = plan.sanitize.clone();
        Self(Scrubber::of(&Sanitizer::standard(
            rules,
            Findings::unheard(),
            own,
        )))
    }

    pub(super) fn text(&self, text: &str) -> String {
        let clean = self.0.without_credentials(&Json::string(text));
        let clean = clean.as_ref().and_then(|clean| clean.root().as_str());
        clean.map_or_else(|| WITHHELD.to_owned(), |clean| clean.into_owned())
    }

    /// A definition with what is shown of it, where it can be told what is in it.
    pub(super) fn whole<'a>(&self, text: &'a Json) -> Option<Whole<'a>> {
        let clean = self.0.without_credentials(text)?;
        Some(Whole { text, clean })
    }

    /// By what stands beside it in the `wholes` before and after a secret is known, too.
    pub(super) fn change(&self, change: Difference, wholes: [Option<&Whole<'_>>; 2]) -> Change {
        let Difference {
            path,
            before,
            after,
        } = change;
        let last = path.rsplit('/').next().unwrap_or_default();
        // Where nobody knows of the whole, with what it is called: some are known for secrets by that alone.
        let alone = |value: &Json| {
            let named = meta::object_of(&[(last, value.clone())]);
            let named = self.0.without_credentials(&named)?;
            let member = named.root().members().next()?;
            Some(named.slice(member.value).detached())
        };
        let clean = |value: &Json, whole: Option<&Whole<'_>>| {
            let inside = whole.and_then(|whole| whole.at(&path));
            inside.or_else(|| alone(value))
        };
        let before = before.as_ref().map(|value| clean(value, wholes[0]));
        let after = after.as_ref().map(|value| clean(value, wholes[1]));
        let shown = match (&before, &after) {
            (Some(None), _) | (_, Some(None)) => Shown::Withheld,
            (Some(before), Some(after)) if before == after => Shown::Alike,
            _ => Shown::Seen,
        };
        let told = |value: Option<Json>| value.unwrap_or_else(|| Json::string(WITHHELD));
        Change {
            path: self.text(&path),
            before: before.map(told),
            after: after.map(told),
            shown,
        }
    }
}

impl Whole<'_> {
    /// What is shown of what stands at a place. It is found by where it stands: names may be shown otherwise than they are.
    fn at(&self, path: &str) -> Option<Json> {
        let (mut text, mut clean): (Node<'_>, Node<'_>) = (self.text.root(), self.clean.root());
        for step in path.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            (text, clean) = match text.kind() {
                Kind::Object => {
                    let mut both = text.members().zip(clean.members());
                    let (text, clean) = both.find(|(text, _)| text.key == step)?;
                    (text.value, clean.value)
                }
                Kind::Array => {
                    let at = step.parse().ok()?;
                    text.elements().zip(clean.elements()).nth(at)?
                }
                Kind::String | Kind::Number | Kind::Bool | Kind::Null => return None,
            };
        }
        Some(self.clean.slice(clean).detached())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::{
        json::Limits,
        pins::differences,
        sanitize::rules::{Budget, Rules},
    };

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::KNOWN).unwrap()
    }

    /// How two definitions differ, as it is shown.
    fn changes(rules: Rules, before: &Json, after: &Json) -> Vec<Change> {
        let own = OwnCredentials::new();
        own.hold(["P@ssw0rd!hunter22"]);
        let sanitizer = Sanitizer::standard(rules, Findings::unheard(), own);
        let clean = Clean(Scrubber::of(&sanitizer));
        let wholes = [before, after].map(|text| clean.whole(text));
        let wholes = wholes.each_ref().map(Option::as_ref);
        let all = differences(before, after).into_iter();
        all.map(|it| clean.change(it, wholes)).collect()
    }

    #[test]
    fn what_differs_in_what_is_not_shown_is_told_from_what_nobody_knows() {
        let token = |end: char| json(&format!(r#"{{"t":"glpat-k7Qd2ZrTn8VbXw4Ls9Y{end}"}}"#));
        let all = changes(Rules::default(), &token('c'), &token('d'));
        assert!(matches!(
            all[..],
            [Change {
                shown: Shown::Alike,
                ..
            }]
        ));
        let budget = Budget {
            per_mib: Duration::ZERO,
            base: Duration::ZERO,
        };
        let rules = Rules {
            budget,
            ..Rules::default()
        };
        let long = |of: &str| json(&format!(r#"{{"t":"{}"}}"#, of.repeat(100_000)));
        let all = changes(rules, &long("ab "), &long("cd "));
        assert!(matches!(
            all[..],
            [Change {
                shown: Shown::Withheld,
                ..
            }]
        ));
        for shown in [&all[0].before, &all[0].after] {
            assert_eq!(shown.as_ref().unwrap().as_str(), "\"[withheld]\"");
        }
    }

    #[test]
    fn of_what_differs_no_secret_is_shown_that_is_known_by_what_stands_beside_it() {
        let env = |name: &str, value: &str| {
            let value = format!(r#"{{"name":"DB_PASSWORD","value":"{value}"}}"#);
            json(&format!(r#"{{"{name}":[{value}],"b/~":"{name}"}}"#))
        };
        let before = env("P@ssw0rd!hunter22", "x8Kd-20qpL_zz7Wd");
        let after = env("P@ssw0rd!hunter22", "y5Rf-31wmN_aa9Qe");
        let [one] = &changes(Rules::default(), &before, &after)[..] else {
            panic!("one place")
        };
        let shown = [&one.before, &one.after].map(|json| json.as_ref().unwrap().as_str());
        assert!(
            shown.iter().all(|shown| shown.contains("[redacted:")),
            "{shown:?}"
        );
        assert_eq!(one.path, "/[redacted:own_credential]/0/value");
        let other = json(r#"{"a":1,"b/~":"now"}"#);
        let all = changes(Rules::default(), &json(r#"{"a":1,"b/~":"then"}"#), &other);
        let after = all[0].after.as_ref().unwrap();
        assert_eq!((all.len(), after.as_str()), (1, "\"now\""));
    }
}
