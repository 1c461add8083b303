//! Checking one definition: what is wrong with an item is decided here, on its own, before names are compared.

use std::sync::Arc;

use super::{
    Content, Route, Terms,
    namespace::Namespace,
    report::Reason,
    rules::{CatalogRules, NamingRules},
    schema::SchemaCheck,
    skills, spelling, strict,
    template::Template,
};
use crate::{
    json::{Json, Kind, Node},
    protocol::{definition, meta::META, methods::ListKind, mirror},
    schema::Gap,
};

/// One item that may be offered.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it leads.
    pub(super) route: Route,
    /// The definition as the upstream gave it.
    pub(super) raw: Json,
    /// The digest of that, by which pins know it too. Made here, since whoever may not see the item could tell by the time that
    /// it takes the first time that there is one (SECURITY AUTHZ-7).
    pub(super) digest: Box<str>,
    /// Its name or URI outside.
    pub(super) exposed: Arc<str>,
    /// The operator's description instead of the upstream's.
    pub(super) describe: Option<Json>,
    /// For a template: itself, parsed, in its outward form.
    pub(super) template: Option<Template>,
    /// For a tool with an app: the `ui://` address of its page, which need not be listed (PROTOCOL E).
    pub(super) app: Option<Box<str>>,
    /// For a tool: whether the validator of clients before 2026-07-28 takes its output schema, if it has one.
    pub(super) is_output_common: bool,
    /// What the operator is told of it although it is offered.
    pub(super) doubt: Option<Gap>,
    /// What the operator is told of its text although it is offered.
    pub(super) flagged: Option<Content>,
    /// For a tool: whether models may call it.
    pub(super) to_models: bool,
    /// For a tool: whether apps of its server may call it.
    pub(super) to_apps: bool,
    /// What its name looks like, for tools and prompts.
    pub(super) outline: Box<str>,
    /// At least the bytes of its outward definition in any shape.
    pub(super) weight: usize,
}

/// The name or URI outside of what an upstream calls `local`.
///
/// # Errors
/// For a template before which no prefix can stand.
pub(super) fn exposed(
    naming: &NamingRules,
    namespace: &Namespace,
    kind: ListKind,
    local: &str,
) -> Result<String, Reason> {
    Ok(match kind {
        ListKind::Tools => {
            let name = naming.rename.get(local).map_or(local, String::as_str);
            namespace.outward_name(name, local)
        }
        ListKind::Prompts => namespace.outward_name(local, local),
        ListKind::Resources | ListKind::Skills => namespace
            .outward_uri(local)
            .unwrap_or_else(|| local.to_owned()),
        ListKind::Templates => namespace
            .outward_template(local)
            .map_err(|_| Reason::OpenTemplate)?
            .unwrap_or_else(|| local.to_owned()),
    })
}

/// Most bytes of a tool or prompt name from an upstream.
const NAME_BYTES: usize = 1_024;
/// Most bytes of a URI or template from an upstream.
pub(super) const URI_BYTES: usize = 8_192;

/// Checks the definitions of one list of one upstream.
pub(super) struct Checker<'a> {
    pub(super) rules: &'a CatalogRules,
    pub(super) naming: &'a NamingRules,
    pub(super) namespace: &'a Namespace,
    pub(super) kind: ListKind,
    pub(super) schemas: SchemaCheck,
}

impl Checker<'_> {
    /// The item that `raw` defines; `None` when the operator did not take it.
    ///
    /// # Errors
    /// Why it is not offered.
    pub(super) fn check(&mut self, raw: &Json) -> Result<Option<Item>, Reason> {
        let bounds = &self.rules.bounds;
        if raw.len() > bounds.definition_bytes {
            return Err(Reason::TooLarge(bounds.definition_bytes));
        }
        let root = raw.root();
        if root.kind() != Kind::Object {
            return Err(Reason::NotAnObject);
        }
        let local = self.key(root)?;
        if self.kind == ListKind::Tools && !self.naming.tools.takes(&local) {
            return Ok(None);
        }
        self.types(root)?;
        let describe = (self.kind == ListKind::Tools)
            .then(|| self.naming.described(&local))
            .flatten()
            .map(Json::string);
        if describe.is_none()
            && let Some(text) = root.member("description").and_then(Node::as_str)
            && text.len() > bounds.description_bytes
        {
            return Err(Reason::DescriptionTooLong(bounds.description_bytes));
        }
        let (mut terms, mut doubt, mut is_output_common) = (None, None, true);
        let headers = if self.kind == ListKind::Tools {
            let mut laid_out = |member| {
                let schema = root.member(member)?;
                (schema.kind() == Kind::Object).then(|| self.schemas.check(schema, bounds))
            };
            let input = laid_out("inputSchema").transpose()?;
            let output = laid_out("outputSchema").transpose()?;
            let mut gaps = input
                .iter()
                .chain(&output)
                .filter_map(|schema| schema.laid_out.gap());
            doubt = gaps.next();
            is_output_common = output.as_ref().is_none_or(|output| output.is_common);
            let [input, output] = [input, output].map(|it| it.map(|schema| schema.laid_out));
            let validation = self.naming.validation.of(&local);
            terms = Terms::of(input, output, validation, bounds.schema_time);
            mirror::of_tool(raw)?
        } else {
            Vec::new()
        };
        let screened = (self.rules.screen).look(&self.naming.upstream, Some(self.kind), raw);
        if let Some(content) = screened.withheld {
            return Err(Reason::Content(content));
        }
        let exposed = exposed(self.naming, self.namespace, self.kind, &local)?;
        let template = match self.kind {
            ListKind::Templates => Some(Template::parse(&exposed).ok_or(Reason::BadTemplate)?),
            ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Skills => None,
        };
        Ok(Some(Item {
            weight: self.weight(raw, &exposed, describe.as_ref()),
            outline: match self.kind {
                ListKind::Tools | ListKind::Prompts => spelling::outline(&local).into(),
                ListKind::Resources | ListKind::Templates | ListKind::Skills => Box::default(),
            },
            to_models: visible(root, "model"),
            to_apps: visible(root, "app"),
            app: (self.kind == ListKind::Tools).then(|| app(root)).flatten(),
            route: Route {
                upstream: self.naming.upstream.clone(),
                local: local.into(),
                headers: headers.into(),
                task_only: self.kind == ListKind::Tools && only_as_task(root),
                terms,
            },
            raw: raw.clone(),
            digest: definition::digest(&definition::text(self.kind, raw)).into(),
            exposed: exposed.into(),
            describe,
            template,
            is_output_common,
            doubt,
            flagged: screened.flagged,
        }))
    }

    /// The name or URI, if it is one that may be shown.
    fn key(&self, root: Node<'_>) -> Result<String, Reason> {
        let member = self.kind.key();
        let key = root
            .member(member)
            .and_then(Node::as_str)
            .filter(|key| !key.is_empty())
            .ok_or(Reason::Missing(member))?
            .into_owned();
        let (limit, offence) = match self.kind {
            ListKind::Tools | ListKind::Prompts => (NAME_BYTES, spelling::of_name(&key)),
            ListKind::Resources | ListKind::Skills => (URI_BYTES, spelling::of_address(&key)),
            // What it expands to is looked at when that is asked for.
            ListKind::Templates => (URI_BYTES, spelling::of_uri(&key)),
        };
        if key.len() > limit {
            return Err(Reason::KeyTooLong(limit));
        }
        match offence {
            Some(offence) => Err(offence.into()),
            None if self.kind == ListKind::Resources && !spelling::is_uri(&key) => {
                Err(Reason::NotAUri)
            }
            None => Ok(key),
        }
    }

    /// The members that an item is nothing without, in the form that strict clients take: one bad definition must not cost them
    /// the whole merged list. What is optional and of another form is left out of what is shown (`strict`).
    fn types(&self, root: Node<'_>) -> Result<(), Reason> {
        match self.kind {
            ListKind::Tools => {
                let schema = root
                    .member("inputSchema")
                    .ok_or(Reason::Missing("inputSchema"))?;
                let is_object =
                    schema.member("type").and_then(Node::as_str).as_deref() == Some("object");
                if !is_object || !strict::is_root(schema) {
                    return Err(Reason::WrongType("inputSchema"));
                }
            }
            ListKind::Prompts => {
                let arguments = root.member("arguments").into_iter();
                let has_name =
                    |argument: Node<'_>| argument.member("name").and_then(Node::as_str).is_some();
                if !arguments.flat_map(Node::elements).all(has_name) {
                    return Err(Reason::WrongType("arguments"));
                }
            }
            ListKind::Skills => skills::check(root)?,
            ListKind::Resources | ListKind::Templates => {
                if root.member("name").and_then(Node::as_str).is_none() {
                    return Err(Reason::Missing("name"));
                }
            }
        }
        Ok(())
    }

    fn weight(&self, raw: &Json, exposed: &str, describe: Option<&Json>) -> usize {
        // A URI may hold characters that need escapes; `_meta` may repeat the prefix twice; the stale mark, a comma and
        // a title inside annotations are small.
        let title = raw
            .root()
            .member("title")
            .map_or(0, |title| title.raw().len());
        // Each file of a skill is named by a URI that gets the prefix, too.
        let files = match self.kind {
            ListKind::Skills => skills::files(raw.root()).count(),
            ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Templates => 0,
        };
        raw.len()
            + files * (2 * self.namespace.prefix().len() + 2)
            + 2 * exposed.len()
            + describe.map_or(0, Json::len)
            + 2 * self.namespace.prefix().len()
            + title
            + 96
    }
}

/// Whether a tool says that it runs as a core task or not at all.
fn only_as_task(tool: Node<'_>) -> bool {
    let support = tool
        .member("execution")
        .and_then(|execution| execution.member("taskSupport"));
    support.and_then(Node::as_str).as_deref() == Some("required")
}

/// The page of a tool's app, as either generation of the extension spells it.
fn app(tool: Node<'_>) -> Option<Box<str>> {
    let meta = tool.member(META)?;
    let nested = meta.member("ui").and_then(|ui| ui.member("resourceUri"));
    let uri = nested.or_else(|| meta.member("ui/resourceUri"))?.as_str()?;
    uri.starts_with("ui://").then(|| uri.into())
}

/// Whether a tool is for `whom`; for everybody, if it does not say.
fn visible(tool: Node<'_>, whom: &str) -> bool {
    let visibility = tool
        .member(META)
        .and_then(|meta| meta.member("ui"))
        .and_then(|ui| ui.member("visibility"))
        .filter(|visibility| visibility.kind() == Kind::Array);
    visibility.is_none_or(|visibility| {
        visibility
            .elements()
            .any(|one| one.as_str().as_deref() == Some(whom))
    })
}
