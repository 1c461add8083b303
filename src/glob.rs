//! Globs over names: `*` is any run of characters, `?` any one, everything else itself.

/// Whether one of `globs` matches all of `text`.
pub fn any(globs: &[String], text: &str) -> bool {
    globs.iter().any(|glob| matches(glob, text))
}

/// Whether `glob` matches all of `text`. At most the product of both lengths in steps.
pub fn matches(glob: &str, text: &str) -> bool {
    let (mut glob, mut text) = (glob, text);
    let mut retry: Option<(&str, &str)> = None; // past the last `*`, and where its run ends so far
    loop {
        let mut wanted = glob.chars();
        let mut given = text.chars();
        match (wanted.next(), given.next()) {
            (Some('*'), _) => {
                glob = wanted.as_str();
                retry = Some((glob, text));
                continue;
            }
            (Some(want), Some(have)) if want == '?' || want == have => {
                (glob, text) = (wanted.as_str(), given.as_str());
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((past, run)) = retry else {
            return false;
        };
        let mut longer = run.chars();
        if longer.next().is_none() {
            return false;
        }
        (glob, text) = (past, longer.as_str());
        retry = Some((past, text));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_are_runs_and_question_marks_are_characters() {
        for (glob, text) in [
            ("*", ""),
            ("a*c", "abcbc"),
            ("*issue*", "github_list_issues"),
            ("?é", "öé"),
            ("**", "x"),
            ("", ""),
        ] {
            assert!(matches(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("", "a"),
            ("a", "A"),
            ("?", ""),
            ("a*c", "abcb"),
            ("*a", "b"),
        ] {
            assert!(!matches(glob, text), "{glob} {text}");
        }
    }
}
