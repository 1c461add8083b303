//! Every link of README and manual leads to a file of ours and to a heading in it, and every chapter is reached.

use std::path::{Component, Path, PathBuf};

use crate::{TEXTS, top};

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    for (place, text) in TEXTS {
        for link in links(text) {
            if link.starts_with("https://") {
                continue;
            }
            seen += 1;
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = match path {
                "" => PathBuf::from(place),
                _ => plain(&Path::new(place).with_file_name("").join(path)),
            };
            assert!(top("").join(&file).exists(), "{place}: {link}");
            if heading.is_empty() {
                continue;
            }
            let text = std::fs::read_to_string(top("").join(&file)).expect("text");
            assert!(
                anchors(&text).any(|anchor| anchor == heading),
                "{place}: {link}"
            );
        }
    }
    assert!(seen > 20, "{seen} links");
}

#[test]
fn every_chapter_is_tested_and_linked_from_the_manual() {
    let mut chapters = 0;
    for entry in std::fs::read_dir(top("deploy/manual")).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("UTF-8");
        chapters += 1;
        let place = format!("deploy/manual/{name}");
        assert!(TEXTS.iter().any(|(tested, _)| *tested == place), "{name}");
        let index = include_str!("../../deploy/manual/README.md");
        assert!(
            name == "README.md" || links(index).any(|link| link == name),
            "{name}"
        );
    }
    assert_eq!(chapters + 1, TEXTS.len());
}

/// Where the links of a text lead, those in its blocks aside.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| {
        let ends = prose.split("](").skip(1);
        ends.filter_map(|rest| Some(rest.split_once(')')?.0))
    })
}

/// What the headings of a text are reached by.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{}", path.display()),
            Component::Normal(part) => plain.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}
