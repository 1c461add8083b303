//! What is gone of an upstream, and what new items may be of it under another name.
//!
//! Cost: what is gone is read once for all that is new. What is the same is looked up; only names that are nearly the same are
//! compared one by one, as far as [`EFFORT`] goes. Beyond it, what is new is only new.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    alike::{Effort, Outline},
    known::Known,
    pin::{Key, Pin},
};
use crate::protocol::definition;

/// What goes into comparing names, for one update: about a tenth of a second.
const EFFORT: usize = 32 << 20;

/// The items of an upstream that are gone, by sort.
pub(super) struct Gone {
    by_outline: BTreeMap<(&'static str, Outline), Arc<str>>,
    /// By the digest of what they say, as far as their texts are kept.
    by_body: HashMap<(&'static str, String), Arc<str>>,
    effort: Effort,
}

impl Gone {
    pub(super) fn of(pins: &BTreeMap<Key, Pin>) -> Self {
        let mut gone = Self {
            by_outline: BTreeMap::new(),
            by_body: HashMap::new(),
            effort: Effort(EFFORT),
        };
        for ((sort, name), pin) in pins.iter().filter(|(_, pin)| pin.gone > 0) {
            let outline = (*sort, Outline::of(name));
            gone.by_outline
                .entry(outline)
                .or_insert_with(|| name.clone());
            if let Some(body) = pin.approved.as_ref().and_then(body) {
                let same = gone.by_body.entry((sort, body));
                same.or_insert_with(|| name.clone());
            }
        }
        gone
    }

    /// What is gone that a new item may be under another name: one that says the same, or whose name looks like its own.
    pub(super) fn like(&mut self, (sort, name): &Key, known: &Known) -> Option<Arc<str>> {
        let same = body(known).and_then(|body| self.by_body.get(&(*sort, body)));
        let outline = (*sort, Outline::of(name));
        let found = same.or_else(|| self.by_outline.get(&outline)).or_else(|| {
            let is_near = |((of, other), _): &(&(&str, Outline), &Arc<str>)| {
                of == sort && outline.1.is_near(other, &mut self.effort)
            };
            self.by_outline.iter().find(is_near).map(|(_, name)| name)
        });
        found.cloned()
    }
}

/// The digest of a definition without what it is called; `None` where its text is not kept.
fn body(known: &Known) -> Option<String> {
    let members = known.text.as_ref()?.root().members();
    let said = members
        .filter(|member| !matches!(&*member.key, "name" | "title" | "uri" | "uriTemplate"))
        .filter(|member| member.value.raw().len() > 2)
        .map(|member| format!("{:?}:{}", member.key, member.value.raw()));
    Some(definition::digest(&said.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    fn known(description: &str) -> Known {
        let text = format!(r#"{{"description":"{description}","name":"x"}}"#);
        Known::of(&Json::composed(text.into()))
    }

    #[test]
    fn thousands_of_long_names_are_not_compared_each_with_each() {
        const LENGTH: usize = 124;
        let name = |n: usize| Arc::<str>::from(format!("{n:0LENGTH$}"));
        let pin = |n| Pin {
            approved: Some(known(&format!("old {n}"))),
            gone: 1,
            ..Pin::default()
        };
        let pins = (0..1_000).map(|n| (("tools", name(n)), pin(n)));
        let mut gone = Gone::of(&pins.collect());
        for n in 0..10_000 {
            let new = ("tools", name(n).replacen("0000", "abcd", 1).into());
            assert_eq!(gone.like(&new, &known(&format!("new {n}"))), None);
        }
        assert!(gone.effort.0 < LENGTH * LENGTH, "it is spent");
        // What is the same is found all the same.
        let looks = ("tools", format!("{}_", name(7)).into());
        assert_eq!(gone.like(&looks, &known("new")), Some(name(7)));
        let says = ("tools", "other".into());
        assert_eq!(gone.like(&says, &known("old 9")), Some(name(9)));
        let elsewhere = ("prompts", "other".into());
        assert_eq!(gone.like(&elsewhere, &known("old 9")), None);
    }
}
