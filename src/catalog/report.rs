//! Reports: what is not offered, or only with a doubt, and why; for the operator, never for clients.

use super::{
    Content,
    schema::SchemaFault,
    spelling::{self, Offence},
};
use crate::{
    json::{Json, Node},
    metrics::{self, Bound},
    protocol::{UpstreamId, methods::ListKind, mirror::BadAnnotation},
    schema::Gap,
};

/// An item that is not offered, or only with a doubt, and why: for the operator, never for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whose it is.
    pub upstream: UpstreamId,
    /// In which of its lists.
    pub kind: ListKind,
    /// Its original name or URI, shortened, with hidden characters escaped; empty when the report is on the list.
    pub name: String,
    /// Why.
    pub reason: Reason,
}

/// Why an item is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Not an object.
    #[error("is not an object")]
    NotAnObject,
    /// A member that must be there is not, or is empty.
    #[error("has no `{0}`")]
    Missing(&'static str),
    /// A member is not of its type; strict clients would refuse the whole list.
    #[error("has a `{0}` of the wrong type")]
    WrongType(&'static str),
    /// A name or URI longer than the bound, in bytes.
    #[error("has a name or URI of more than {0} bytes")]
    KeyTooLong(usize),
    /// A name or URI that could fool.
    #[error("{0}")]
    Spelling(#[from] Offence),
    /// A URI that is none; strict clients would refuse the whole list.
    #[error(
        "has a `uri` that is not a URI: it has no scheme, or behind `//` no host or a port that is not a number"
    )]
    NotAUri,
    /// A definition larger than the bound, in bytes.
    #[error("is larger than {0} bytes")]
    TooLarge(usize),
    /// A description longer than the bound, in bytes.
    #[error("has a description of more than {0} bytes")]
    DescriptionTooLong(usize),
    /// A bad input or output schema.
    #[error("its schema {0}")]
    Schema(#[from] SchemaFault),
    /// Kept, but not to be checked to the end.
    #[error("is offered, although its schema {0}")]
    Doubt(Gap),
    /// Text that must not be shown to a model.
    #[error("holds {0}")]
    Content(Content),
    /// Kept, but its text may be an attempt on the model.
    #[error("is offered, although it holds {0}")]
    Flagged(Content),
    /// A bad `x-mcp-header`.
    #[error("{0}")]
    Header(#[from] BadAnnotation),
    /// Not an RFC 6570 template.
    #[error("is not a URI template")]
    BadTemplate,
    /// A template whose scheme is not spelled out.
    #[error("begins with an expression, so that no prefix can be put before it")]
    OpenTemplate,
    /// The upstream lists it twice.
    #[error("is listed twice")]
    Repeated,
    /// The outward name is another's already.
    #[error("its outward name is taken by `{0}`")]
    Taken(UpstreamId),
    /// The outward name may be another's by its spelling, or by what is remembered, who was not read yet.
    #[error("its outward name is kept for `{0}` until that is read")]
    Reserved(UpstreamId),
    /// Its URI reads as another upstream's.
    #[error("its URI reads as one of `{0}`")]
    Foreign(UpstreamId),
    /// Beyond the number of items in one list.
    #[error("is beyond the {0} items of one list")]
    TooMany(usize),
    /// Beyond its upstream's share of the size of all definitions together, in bytes.
    #[error("is beyond the {0} bytes that its upstream may have of all definitions")]
    TotalTooLarge(usize),
    /// The list was cut short when it was read.
    #[error("the list was cut short at a limit")]
    CutShort,
    /// It is not what somebody approved, or nobody did.
    #[error("is withheld until somebody approves it; `usher pins diff` shows it")]
    Quarantined,
    /// Offered, but called like an item of another upstream.
    #[error("is offered, although `{0}` has one of the same name")]
    Shadows(UpstreamId),
    /// Offered, but looks like an item of another upstream.
    #[error("is offered, although it looks like `{1}` of `{0}`")]
    Resembles(UpstreamId, String),
    /// Not an item, but what the configuration names where the upstream offers nothing of that name.
    #[error("is in `{0}`, but no tool that is there is called so")]
    Unmet(&'static str),
    /// The same of what gives tags, which all items may have.
    #[error("is in `tags`, but nothing that is there is called so")]
    OfNothing,
    /// More of the same list, not told one by one.
    #[error("and {0} more")]
    More(usize),
}

impl Reason {
    /// The bound that it is over, if that is why.
    const fn bound(&self) -> Option<Bound> {
        match self {
            Self::TooLarge(_) => Some(Bound::CatalogDefinition),
            Self::DescriptionTooLong(_) => Some(Bound::CatalogDescription),
            Self::TooMany(_) => Some(Bound::CatalogItems),
            Self::TotalTooLarge(_) => Some(Bound::CatalogTotal),
            Self::Schema(SchemaFault::TooDeep(_)) => Some(Bound::SchemaDepth),
            Self::Schema(SchemaFault::TooMany(_)) => Some(Bound::Subschemas),
            Self::Schema(SchemaFault::PatternTooLong(_)) => Some(Bound::SchemaPattern),
            Self::Schema(
                SchemaFault::RemoteRef | SchemaFault::NotASchema(_) | SchemaFault::Reference(_),
            )
            | Self::NotAnObject
            | Self::Missing(_)
            | Self::WrongType(_)
            | Self::NotAUri
            | Self::KeyTooLong(_)
            | Self::Spelling(_)
            | Self::Doubt(_)
            | Self::Content(_)
            | Self::Flagged(_)
            | Self::Header(_)
            | Self::BadTemplate
            | Self::OpenTemplate
            | Self::Repeated
            // Counted where it was cut.
            | Self::CutShort
            | Self::Taken(_)
            | Self::Reserved(_)
            | Self::Quarantined
            | Self::Shadows(_)
            | Self::Resembles(..)
            | Self::Foreign(_)
            | Self::Unmet(_)
            | Self::OfNothing
            | Self::More(_) => None,
        }
    }

    /// The word for it in findings.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NotAnObject | Self::Missing(_) | Self::WrongType(_) | Self::NotAUri => {
                "malformed"
            }
            Self::KeyTooLong(_)
            | Self::TooLarge(_)
            | Self::DescriptionTooLong(_)
            | Self::TooMany(_)
            | Self::TotalTooLarge(_)
            | Self::CutShort => "too_large",
            Self::Spelling(_) => "spelling",
            Self::Schema(_) => "schema",
            Self::Doubt(_) => "schema_unchecked",
            Self::Header(_) => "header",
            Self::BadTemplate | Self::OpenTemplate => "template",
            Self::Repeated => "repeated",
            Self::Taken(_) => "name_taken",
            Self::Reserved(_) => "name_reserved",
            Self::Foreign(_) => "foreign_uri",
            Self::Content(_) => "content",
            Self::Flagged(_) => "content_flagged",
            Self::Quarantined => "not_approved",
            Self::Shadows(_) => "shadows",
            Self::Resembles(..) => "resembles",
            Self::Unmet(_) | Self::OfNothing => "unmet",
            Self::More(_) => "more",
        }
    }

    /// Whether the item is left out for it.
    pub const fn excludes(&self) -> bool {
        !matches!(
            self,
            Self::Doubt(_)
                | Self::Flagged(_)
                | Self::Shadows(_)
                | Self::Resembles(..)
                | Self::Unmet(_)
                | Self::OfNothing
                | Self::CutShort
        )
    }
}

/// Most reports about one list of one upstream; the rest is counted.
const REPORTS: usize = 100;
/// Most characters of a name in a report.
const REPORTED_NAME: usize = 120;

/// What was left out of one list of one upstream or is doubtful in it, and why.
#[derive(Debug, Clone)]
pub(super) struct Reports {
    upstream: UpstreamId,
    kind: ListKind,
    list: Vec<Report>,
    more: usize,
}

impl Reports {
    pub(super) const fn new(upstream: UpstreamId, kind: ListKind) -> Self {
        Self {
            upstream,
            kind,
            list: Vec::new(),
            more: 0,
        }
    }

    /// Notes why the item called `name` is left out, or is doubtful.
    pub(super) fn add(&mut self, name: &str, reason: Reason) {
        if let Some(bound) = reason.bound() {
            metrics::reached(bound);
        }
        if self.list.len() < REPORTS {
            let name = name
                .chars()
                .take(REPORTED_NAME)
                .flat_map(|c| {
                    let plain =
                        !c.is_control() && spelling::of_uri(c.encode_utf8(&mut [0; 4])).is_none();
                    let escaped = (!plain).then(|| c.escape_unicode());
                    plain
                        .then_some(c)
                        .into_iter()
                        .chain(escaped.into_iter().flatten())
                })
                .collect();
            self.list.push(self.report(name, reason));
        } else {
            self.more += 1;
        }
    }

    /// Notes that a raw definition is left out.
    pub(super) fn add_raw(&mut self, raw: &Json, reason: Reason) {
        let root = raw.root();
        let name = root.member(self.kind.key()).and_then(Node::as_str);
        self.add(name.as_deref().unwrap_or_default(), reason);
    }

    /// All of it.
    pub(super) fn into_list(mut self) -> Vec<Report> {
        if self.more > 0 {
            let more = self.report(String::new(), Reason::More(self.more));
            self.list.push(more);
        }
        self.list
    }

    fn report(&self, name: String, reason: Reason) -> Report {
        Report {
            upstream: self.upstream.clone(),
            kind: self.kind,
            name,
            reason,
        }
    }
}
