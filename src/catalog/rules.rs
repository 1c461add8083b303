//! What the operator decided about names and selections: plain validated values, made from configuration.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::Screen;
use crate::{
    glob,
    protocol::{UpstreamId, methods::ListKind},
};

/// Everything that shapes a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRules {
    /// The upstreams in configured order, which is the order of every merged list.
    pub upstreams: Vec<NamingRules>,
    /// Named selections.
    pub toolsets: Vec<ToolsetRules>,
    /// What outward tool and prompt names may look like.
    pub names: NameRules,
    /// Bounds on pages.
    pub pages: PageRules,
    /// Bounds on what an upstream may offer (SECURITY 6).
    pub bounds: CatalogBounds,
    /// Judges what definitions say.
    pub screen: Screen,
}

/// How one upstream's items are named and which are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamingRules {
    /// Whose.
    pub upstream: UpstreamId,
    /// What stands before `_` in names and before `+` in URIs; empty means nothing. Holds no `_`. Default: the upstream's key.
    pub prefix: Arc<str>,
    /// Tools taken, by original name.
    pub tools: Selection,
    /// Original tool name to the name exposed after the prefix.
    pub rename: BTreeMap<String, String>,
    /// Tool name, as it is exposed after the prefix or original, to the description shown instead.
    pub describe: BTreeMap<String, String>,
    /// What the operator says of its items, for policies.
    pub labels: Labels,
    /// Whether calls of its tools are held to their schemas.
    pub validation: ValidationRules,
    /// What it offered when it was there last, by sort and by its own names, as far as somebody remembers: those names stay its own
    /// until it is read (SECURITY CAT-1). Default: nothing.
    pub claims: Arc<[(ListKind, Arc<str>)]>,
}

impl NamingRules {
    /// What is said of tools by a name that none of those offered has, and under which key: as a rule a slip, and where a tool was
    /// to be denied, one that leaves it in reach.
    pub(super) fn unmet<'a>(
        &'a self,
        offered: &'a [&str],
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let globs = |key: &'static str, globs: &'a [String]| {
            globs.iter().map(move |glob| (key, glob.as_str()))
        };
        let (pins, held) = (&self.labels.pins, &self.validation.tools);
        let pins = pins.iter().map(|(glob, _)| ("tools.annotations", &**glob));
        let held = held.iter().map(|(glob, _)| ("validate.tools", &**glob));
        let names = |key: &'static str, named: &'a BTreeMap<String, String>| {
            named.keys().map(move |name| (key, name.as_str()))
        };
        let met = |glob: &str| glob == "*" || offered.iter().any(|name| glob::matches(glob, name));
        let renamed = names("rename", &self.rename).filter(|(_, name)| !offered.contains(name));
        let shown = move |name: &str| {
            let mut given = self.rename.iter();
            given.any(|(original, given)| given == name && offered.contains(&&**original))
        };
        let described = names("describe", &self.describe);
        let described = described.filter(move |(_, name)| !offered.contains(name) && !shown(name));
        let named = renamed.chain(described);
        globs("tools.allow", &self.tools.allow)
            .chain(globs("tools.deny", &self.tools.deny))
            .chain(pins)
            .chain(held)
            .filter(move |(_, glob)| !met(glob))
            .chain(named)
    }

    /// The globs of tags that none of these names has: as a rule a slip, and one by which a policy permits what it should not.
    pub(super) fn tags_of_nothing<'a>(
        &'a self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> impl Iterator<Item = &'a str> {
        let globs = self.labels.tags.iter().map(|(glob, _)| &**glob);
        globs.filter(move |glob| {
            *glob != "*" && !names.clone().any(|name| glob::matches(glob, name))
        })
    }

    /// The description that is shown, instead of its own, of the tool of this original name: that of the name under which it is
    /// shown, and else that of its original one, unless another is shown under that.
    pub(super) fn described(&self, local: &str) -> Option<&str> {
        let shown = self.rename.get(local).map_or(local, String::as_str);
        let by_original = || {
            let another = self.rename.values().any(|given| given == local);
            self.describe.get(local).filter(|_| !another)
        };
        let text = self.describe.get(shown).or_else(by_original)?;
        Some(text)
    }

    /// What the upstream calls the tool that is shown as `shown`, if it could have one.
    pub(super) fn original<'a>(&'a self, shown: &'a str) -> Option<&'a str> {
        let given = self.rename.iter().find(|(_, given)| *given == shown);
        match given {
            Some((original, _)) => Some(original),
            // That one is shown under another name.
            None => (!self.rename.contains_key(shown)).then_some(shown),
        }
    }
}

/// Whether the calls of an upstream's tools are held to their schemas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidationRules {
    /// Where nothing else is said.
    pub all: Validation,
    /// By glob over original names; of several the last counts.
    pub tools: Vec<(String, Validation)>,
}

/// What is done about values that do not fit their schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validation {
    /// Arguments; never [`OnBroken::Flag`].
    pub arguments: OnBroken,
    /// Results.
    pub results: OnBroken,
}

/// What is done about a value that does not fit its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBroken {
    /// It goes no further.
    #[default]
    Refuse,
    /// It is noted as a finding, and goes on.
    Flag,
    /// It is not looked at.
    Off,
}

impl ValidationRules {
    /// What counts for the tool of this name.
    pub(super) fn of(&self, local: &str) -> Validation {
        let own = self.tools.iter().rev();
        let own = own
            .filter(|(glob, _)| glob::matches(glob, local))
            .map(|(_, validation)| *validation);
        own.into_iter().next().unwrap_or(self.all)
    }
}

/// What the operator says of the items of an upstream, for whoever decides who may use them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Tags, by glob over original names, URIs and templates; an item has those of every glob that it matches.
    pub tags: Vec<(String, Vec<Arc<str>>)>,
    /// What tools do, by glob over original names; of several the last that says something holds.
    pub pins: Vec<(String, Pins)>,
}

/// What a tool does; `None` where the operator does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pins {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy.
    pub destructive: Option<bool>,
    /// Twice is as good as once.
    pub idempotent: Option<bool>,
    /// It reaches outside a closed world.
    pub open_world: Option<bool>,
}

/// Globs over names: `*` is any run of characters, `?` any one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Taken if one matches. Default: `*`.
    pub allow: Vec<String>,
    /// And none of these. Default: none.
    pub deny: Vec<String>,
}

impl Selection {
    /// Whether it takes what its upstream calls so.
    pub(super) fn takes(&self, local: &str) -> bool {
        glob::any(&self.allow, local) && !glob::any(&self.deny, local)
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            allow: vec!["*".into()],
            deny: Vec::new(),
        }
    }
}

/// A named selection, served at `/mcp/NAME`. An upstream in `upstreams` is taken whole; the globs select outward names
/// of all upstreams beside that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolsetRules {
    /// Its name, `[a-z][a-z0-9-]*`, not `u`.
    pub name: Arc<str>,
    /// Globs over outward tool names.
    pub tools: Vec<String>,
    /// Globs over outward prompt names.
    pub prompts: Vec<String>,
    /// Globs over outward resource URIs and templates.
    pub resources: Vec<String>,
    /// Upstreams taken whole.
    pub upstreams: Vec<UpstreamId>,
}

/// What outward tool and prompt names may look like (PRODUCT 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRules {
    /// The most characters: default 64, at most 128.
    pub max: usize,
    /// Which characters.
    pub charset: Charset,
}

/// Characters of outward names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// `[A-Za-z0-9_-]`, what model APIs accept.
    Strict,
    /// `[A-Za-z0-9_.-]`, what the specification advises.
    Spec,
}

impl Default for NameRules {
    fn default() -> Self {
        Self {
            max: 64,
            charset: Charset::Strict,
        }
    }
}

/// Bounds on pages: whichever is met first ends the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRules {
    /// Items: default 500, at most 10,000.
    pub items: usize,
    /// Bytes of encoded items: default 1 MiB.
    pub bytes: usize,
}

impl Default for PageRules {
    fn default() -> Self {
        Self {
            items: 500,
            bytes: 1 << 20,
        }
    }
}

/// Bounds on what an upstream may offer (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogBounds {
    /// Items of one list of one upstream: default 10,000.
    pub items: usize,
    /// Bytes of one definition: default 256 KiB.
    pub definition_bytes: usize,
    /// Bytes of one description: default 16 KiB.
    pub description_bytes: usize,
    /// Bytes of all definitions together, of which each upstream has its share: default 64 MiB.
    pub total_bytes: usize,
    /// Pages of one list: default 256.
    pub pages: usize,
    /// Nesting of a schema: default 32.
    pub schema_depth: usize,
    /// Subschemas of a schema: default 1,000.
    pub subschemas: usize,
    /// Characters of a `pattern`: default 512.
    pub pattern_chars: usize,
    /// Bytes of a cursor of an upstream's; a longer one ends the list. Default 4 KiB.
    pub cursor_bytes: usize,
    /// How long one check against a schema may take, which is counted in steps. Default 20 ms.
    pub schema_time: Duration,
}

impl Default for CatalogBounds {
    fn default() -> Self {
        Self {
            items: 10_000,
            definition_bytes: 256 << 10,
            description_bytes: 16 << 10,
            total_bytes: 64 << 20,
            pages: 256,
            schema_depth: 32,
            subschemas: 1_000,
            pattern_chars: 512,
            cursor_bytes: 4 << 10,
            schema_time: Duration::from_millis(20),
        }
    }
}
