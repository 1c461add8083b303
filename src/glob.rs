//! Globs over names: `*` is any run of characters, `?` any one, everything else itself.

/// Whether one of `globs` matches all of `text`.
pub fn any(globs: &[String], text: &str) -> bool {
    globs.iter().any(|glob| matches(glob, text))
}

/// One part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Any run of characters, none among them.
    Run,
    /// Any one character.
    Any,
    /// This character.
    Is(char),
}

/// Whether `glob` matches all of `text`. At most the product of both lengths in steps.
pub fn matches(glob: &str, text: &str) -> bool {
    let part = |char| match char {
        '*' => Part::Run,
        '?' => Part::Any,
        other => Part::Is(other),
    };
    fits(glob.chars().map(part), text)
}

/// Whether a pattern of these parts matches all of `text`. At most the product of both lengths in steps.
pub fn fits(pattern: impl Iterator<Item = Part> + Clone, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut retry = None; // past the last run, and where that ends so far
    loop {
        let mut wanted = pattern.clone();
        let mut given = text.chars();
        match (wanted.next(), given.next()) {
            (Some(Part::Run), _) => {
                retry = Some((wanted.clone(), text));
                pattern = wanted;
                continue;
            }
            (Some(want), Some(have)) if want == Part::Any || want == Part::Is(have) => {
                (pattern, text) = (wanted, given.as_str());
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((past, run)) = retry.take() else {
            return false;
        };
        let mut longer = run.chars();
        if longer.next().is_none() {
            return false;
        }
        text = longer.as_str();
        pattern = past.clone();
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
