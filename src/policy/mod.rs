//! Who may do what: Cedar policies over what the gateway offers (PRODUCT 9, SECURITY 5.4).
//!
//! Guarantees: what no policy permits is denied; a policy that cannot be evaluated denies; an argument that a policy looks at
//! and Cedar cannot hold exactly denies; a set with anything wrong in it is not loaded at all. Lists, calls, reads and
//! everything else ask the same [`Prepared::decide`] and [`Prepared::lists`], which agree: what is not listed is denied
//! whatever the arguments are. Decisions are those of Cedar over the whole set; what is left out or remembered
//! changes none (`tests::properties`). Not here: how an answer is worded for a client, and what a catalog is: items are
//! handed in.
//!
//! # Arguments
//!
//! `context.args.repo` has the type that the tool's `inputSchema` declares: strings, booleans, integers, arrays as sets, objects
//! as records, so that `amount < 100`, `repo like "acme/*"` and `labels.contains("public")` can be written and validated. A
//! policy is validated with the arguments that it looks at, as the tools in its scope declare them (`schema`); when it
//! is loaded, before there are tools, as its own operators take them (`infer`). An argument without a type that Cedar has is read as
//! text, `context.text.getTag("filter.owner")`. In both cases only what is looked at is represented, and what cannot be is
//! denied. Rejected: an action for each tool, whose validations would multiply with the catalog and whose name authors would
//! have to know; one record with every argument of every tool, whose types contradict each other; text alone, which
//! compares no numbers.

mod action;
mod ask;
mod cases;
mod class;
mod context;
mod expand;
mod explain;
mod fit;
mod follow;
mod groups;
mod infer;
mod item;
mod judge;
mod laid;
mod load;
mod mention;
mod possible;
mod prepared;
mod problem;
mod represent;
mod review;
mod rule;
mod schema;
mod shape;
mod slice;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use moka::sync::Cache;

use class::{CLASSES, Classes, Mixing};
use load::{Compiled, File};
use slice::ClassRules;

pub use action::Action;
pub use ask::{Approval, Ask, Circumstances, Denied, Permit, Refusal};
pub use cases::{Outcome, Somebody, moment};
pub use class::Class;
pub use explain::{Able, About, Explanation, PolicySummary, State, Weighed};
pub use item::{Hints, Item, ItemKind, Subject};
pub use prepared::Prepared;
pub use problem::Problem;
pub use review::Configured;

/// One compiled, validated set of policies. Immutable; cloning shares.
#[derive(Debug, Clone)]
pub struct Policy(Rules);

#[derive(Debug, Clone)]
enum Rules {
    /// No policy is configured.
    None,
    /// Nothing is permitted.
    Deny,
    Set(Arc<Set>),
}

#[derive(Debug)]
struct Set {
    compiled: Compiled,
    classes: Classes,
    /// The policies of a class, by its number.
    by_class: Cache<u64, Arc<ClassRules>, Mixing>,
}

impl Policy {
    /// What holds where no policy is configured: everything is permitted.
    pub fn unrestricted() -> Self {
        Self(Rules::None)
    }

    /// What holds where policy is configured and cannot be used: nothing is permitted (SECURITY AUTHZ-1).
    pub fn deny_everything() -> Self {
        Self(Rules::Deny)
    }

    /// Reads `*.cedar`, `groups.yaml`, `cases.yaml` and `usher.cedarschema` of a directory.
    ///
    /// # Errors
    /// Everything that is wrong, at least one [`Problem`]; then nothing is loaded (SECURITY AUTHZ-3). A directory without any
    /// policy is wrong too: it would deny everything.
    pub fn load(dir: &Path) -> Result<Self, Vec<Problem>> {
        let files = load::files(dir)?;
        Self::compile(&dir.display().to_string(), files)
    }

    /// The same from texts instead of files: each with the name it would have in the directory.
    ///
    /// # Errors
    /// As [`Policy::load`].
    pub fn of(files: &[(&str, &str)]) -> Result<Self, Vec<Problem>> {
        let files = files.iter().map(|(name, text)| File {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        });
        Self::compile("policies", files.collect())
    }

    fn compile(dir: &str, files: Vec<File>) -> Result<Self, Vec<Problem>> {
        let compiled = load::compile(dir, files)?;
        let classes = Classes::of(&compiled);
        Ok(Self(Rules::Set(Arc::new(Set {
            compiled,
            classes,
            by_class: Cache::builder()
                .max_capacity(CLASSES)
                .build_with_hasher(Mixing::default()),
        }))))
    }

    /// Whether everything is permitted without asking: no policy is configured.
    pub const fn is_unrestricted(&self) -> bool {
        matches!(self.0, Rules::None)
    }

    /// Whether nothing is permitted because policy is configured and cannot be used.
    pub const fn denies_everything(&self) -> bool {
        matches!(self.0, Rules::Deny)
    }

    /// SHA-256 of the set in hexadecimal digits: equal for equal sets. Empty where nothing was loaded.
    pub fn digest(&self) -> &str {
        self.set().map_or("", |set| &set.compiled.digest)
    }

    /// How many policies there are.
    pub fn count(&self) -> usize {
        self.set().map_or(0, |set| set.compiled.rules.len())
    }

    /// What is strange about a set that was loaded all the same.
    pub fn notes(&self) -> &[Problem] {
        self.set().map_or(&[], |set| &set.compiled.notes)
    }

    /// The Cedar schema that holds, as text; with the types of the arguments of one item filled in, if one is given.
    pub fn schema(item: Option<&Item>) -> String {
        match item.and_then(|item| Some((item.kind, item.schema.as_ref()?))) {
            Some((ItemKind::Tool, schema)) => {
                schema::with_args(&shape::Shapes::of_tool(schema).cedar())
            }
            Some((ItemKind::Prompt, arguments)) => {
                schema::with_args(&shape::Shapes::of_prompt(arguments).cedar())
            }
            _ => schema::TEXT.to_owned(),
        }
    }

    /// Lays the policies over `items`. What `previous` worked out and still holds is kept.
    pub fn prepare(&self, items: Vec<Item>, previous: Option<&Prepared>) -> Prepared {
        Prepared::of(self, items, previous)
    }

    fn set(&self) -> Option<&Set> {
        match &self.0 {
            Rules::Set(set) => Some(set),
            Rules::None | Rules::Deny => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Rules::Set(one), Rules::Set(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Set {
    /// The policies that a class can be meant by.
    fn rules(&self, class: &Class) -> Arc<ClassRules> {
        self.by_class.get(&class.0.number).unwrap_or_else(|| {
            let rules = Arc::new(ClassRules::of(&self.compiled, &self.classes, class));
            self.by_class.insert(class.0.number, rules.clone());
            rules
        })
    }
}
