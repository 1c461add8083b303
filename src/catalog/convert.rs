//! Definitions as each revision knows them, and as they look from outside (PROTOCOL D6, E).
//! They are the upstream's bytes with edits spliced in: members nobody knows survive byte for byte.

use super::{check::Item, namespace::Namespace, skills, strict};
use crate::{
    json::{Edits, Fate, Json, Kind, Node},
    protocol::{
        Features,
        meta::{META, crosses},
        methods::ListKind,
    },
};

/// In `_meta` of items whose upstream is away: what is shown is the last that was known.
pub const STALE: &str = "dev.usher/stale";

/// What matters of a revision for definitions; revisions of equal shape share their encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    output: Output,
    execution: bool,
    /// `title` is only known inside `annotations`.
    title_hint: bool,
}

/// Which output schemas are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    None,
    Object,
    Any,
}

impl Shape {
    /// How many there may be.
    pub(super) const COUNT: usize = 12;

    /// The shape that `features` ask for in a list of this kind. Only tools differ.
    pub(super) const fn of(features: &Features, kind: ListKind) -> Self {
        if !matches!(kind, ListKind::Tools) {
            return Self {
                output: Output::Any,
                execution: true,
                title_hint: false,
            };
        }
        Self {
            output: if !features.structured_output {
                Output::None
            } else if !features.any_structured {
                Output::Object
            } else {
                Output::Any
            },
            execution: features.execution,
            title_hint: features.annotations && !features.titles,
        }
    }

    /// A number below [`Shape::COUNT`] that differs between shapes.
    pub(super) const fn index(self) -> usize {
        self.output as usize * 4 + self.execution as usize * 2 + self.title_hint as usize
    }

    fn takes_output(self, schema: Node<'_>) -> bool {
        match self.output {
            Output::None => false,
            Output::Any => true,
            Output::Object => {
                let kind = schema.member("type").and_then(Node::as_str);
                kind.as_deref() == Some("object") && strict::is_root(schema)
            }
        }
    }
}

/// How an item is to be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dress<'a> {
    pub(super) kind: ListKind,
    pub(super) shape: Shape,
    pub(super) namespace: &'a Namespace,
    /// Under its outward name, not its upstream's.
    pub(super) outward: bool,
    pub(super) stale: bool,
    /// Whether the upstream takes tasks: without that what a tool says of them is void (2025-11-25, tasks).
    pub(super) executes: bool,
}

impl Dress<'_> {
    /// The definition as it is shown.
    pub(super) fn definition(self, item: &Item) -> Json {
        let root = item.raw.root();
        let mut edits = Edits::new();
        let mut more = Vec::new();
        let title = root
            .member("title")
            .filter(|title| title.kind() == Kind::String);
        let meta = root.member(META).filter(|meta| meta.kind() == Kind::Object);
        if let Some(meta) = meta {
            self.meta(meta, &mut edits);
        } else if self.stale {
            more.push((
                META,
                crate::protocol::meta::object_of(&[(STALE, Json::of(&true))]),
            ));
        }
        let title = title.filter(|_| self.tool() && self.shape.title_hint);
        let title = title.map(|title| item.raw.slice(title));
        let shown = |member: &str, kind: Kind| root.member(member).filter(|it| it.kind() == kind);
        match (shown("annotations", Kind::Object), title) {
            (Some(hints), title) => strict::annotations(self.kind, hints, title, &mut edits),
            (None, Some(title)) => more.push((
                "annotations",
                crate::protocol::meta::object_of(&[("title", title)]),
            )),
            (None, None) => {}
        }
        if let Some(execution) = shown("execution", Kind::Object)
            && self.shows_execution()
        {
            strict::execution(execution, &mut edits);
        }
        if let Some(arguments) = shown("arguments", Kind::Array)
            && self.kind == ListKind::Prompts
        {
            strict::arguments(arguments, &mut edits);
        }
        if self.tool() && self.shape.output != Output::Any {
            self.properties(item, &mut edits);
        }
        if let Some(text) = &item.describe
            && root.member("description").is_none()
        {
            more.push(("description", text.clone()));
        }
        if self.kind == ListKind::Skills {
            skills::outward(root, self.namespace, &mut edits);
        }
        edits.members(root, |key, value| self.fate(item, key, value), &more);
        item.raw.splice(&edits)
    }

    /// Before 2026-07-28 the schema of a property is an object, and strict clients refuse the whole list for another one. So `true`
    /// and `false`, which some libraries write, are said in their other form.
    fn properties(self, item: &Item, edits: &mut Edits) {
        let root = item.raw.root();
        let shown = |schema: &Node<'_>| schema.kind() == Kind::Object;
        let input = root.member("inputSchema").filter(shown);
        let output = root.member("outputSchema").filter(shown);
        let output = output.filter(|schema| self.shows_output(item, *schema));
        for schema in input.into_iter().chain(output) {
            let properties = schema
                .member("properties")
                .filter(|properties| properties.kind() == Kind::Object);
            let Some(properties) = properties else {
                continue;
            };
            if !properties
                .members()
                .any(|member| member.value.kind() == Kind::Bool)
            {
                continue;
            }
            edits.members(
                properties,
                |_, property| match (property.kind(), property.raw()) {
                    (Kind::Bool, "true") => Fate::Replace(Json::empty_object()),
                    (Kind::Bool, _) => Fate::Replace(Json::composed(r#"{"not":{}}"#.into())),
                    _ => Fate::Keep,
                },
                &[],
            );
        }
    }

    fn tool(self) -> bool {
        self.kind == ListKind::Tools
    }

    /// Clients before 2026-07-28 make a validator of every output schema of a list at once, and refuse the list where one cannot be
    /// made; the results are as good without.
    fn shows_output(self, item: &Item, schema: Node<'_>) -> bool {
        self.shape.takes_output(schema)
            && (self.shape.output == Output::Any || item.is_output_common)
    }

    fn shows_execution(self) -> bool {
        self.tool() && self.shape.execution && self.executes
    }

    /// What becomes of a member of the definition.
    fn fate(self, item: &Item, key: &str, value: Node<'_>) -> Fate {
        if key == self.kind.key() {
            return if self.outward && item.exposed != item.route.local {
                Fate::Replace(Json::string(&item.exposed))
            } else {
                Fate::Keep
            };
        }
        match key {
            "description" if let Some(text) = &item.describe => Fate::Replace(text.clone()),
            _ if !strict::takes(self.kind, key, value) => Fate::Remove,
            "icons" => icons(value),
            "outputSchema" if self.tool() && !self.shows_output(item, value) => Fate::Remove,
            "execution" if self.tool() && !self.shows_execution() => Fate::Remove,
            _ => Fate::Keep,
        }
    }

    /// Apps point at their page from here; our own keys are ours alone, and what the specification reserves is of one hop but
    /// for what extensions define (PROTOCOL A7, SECURITY EGR-8).
    fn meta(self, meta: Node<'_>, edits: &mut Edits) {
        let stale = [(STALE, Json::of(&true))];
        let cut = meta.members().any(|member| !crosses(&member.key));
        let flat = meta
            .member("ui/resourceUri")
            .and_then(|uri| self.outward(uri));
        if cut || self.stale || flat.is_some() {
            edits.members(
                meta,
                |key, _| {
                    if !crosses(key) {
                        Fate::Remove
                    } else if key == "ui/resourceUri"
                        && let Some(uri) = &flat
                    {
                        Fate::Replace(uri.clone())
                    } else {
                        Fate::Keep
                    }
                },
                if self.stale { &stale } else { &[] },
            );
        }
        if let Some(uri) = meta.member("ui").and_then(|ui| ui.member("resourceUri"))
            && let Some(outward) = self.outward(uri)
        {
            edits.replace(uri, outward);
        }
    }

    fn outward(self, uri: Node<'_>) -> Option<Json> {
        let uri = uri.as_str()?;
        let outward = self.namespace.outward_uri(&uri)?;
        Some(Json::string(&outward))
    }
}

fn carries_its_bytes(icon: Node<'_>) -> bool {
    let src = icon.member("src").and_then(Node::as_str);
    src.as_deref()
        .and_then(|src| src.get(..5))
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

fn is_well_formed(icon: Node<'_>) -> bool {
    let is_text = |node: Node<'_>| node.kind() == Kind::String;
    let sizes = icon.member("sizes");
    let theme = icon.member("theme");
    icon.member("mimeType").is_none_or(is_text)
        && sizes.is_none_or(|sizes| sizes.kind() == Kind::Array && sizes.elements().all(is_text))
        && theme.is_none_or(|theme| matches!(theme.as_str().as_deref(), Some("light" | "dark")))
}

/// What becomes of the `icons` of what a server describes. Clients are told to show only icons from the server's own origin, which
/// behind us is ours: icons that carry their bytes stay, others go (PROTOCOL E), as do those whose sizes or theme are of no form
/// that strict clients take: one of them would cost such a client the whole merged list.
pub fn icons(icons: Node<'_>) -> Fate {
    let carried: Vec<_> = icons
        .elements()
        .filter(|icon| carries_its_bytes(*icon) && is_well_formed(*icon))
        .map(Node::raw)
        .collect();
    if carried.is_empty() {
        Fate::Remove
    } else if carried.len() == icons.elements().count() {
        Fate::Keep
    } else {
        Fate::Replace(Json::composed(format!("[{}]", carried.join(",")).into()))
    }
}
