//! The screen: what a definition says is judged before it is offered (SECURITY CAT-4), by whoever the catalog is given.

use std::{fmt, sync::Arc};

use crate::{
    json::Json,
    protocol::{UpstreamId, methods::ListKind},
};

/// Judges definitions, and without a kind what an upstream says of itself. The default lets everything through.
#[derive(Clone, Default)]
pub struct Screen(Option<Arc<Judge>>);

type Judge = dyn Fn(&UpstreamId, Option<ListKind>, &Json, Look) -> Screened + Send + Sync;

/// Whether what is found is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It is.
    First,
    /// It was, or will be.
    Again,
}

/// What was found in a definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Screened {
    /// Why it is not offered.
    pub withheld: Option<Content>,
    /// What the operator is told of although it is offered.
    pub flagged: Option<Content>,
    /// What only may be an attempt on the model: where definitions are quarantined, it is not offered before somebody
    /// approved it.
    pub doubt: Option<Content>,
}

/// Something in the text of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} ({rule}) at `{place}`")]
pub struct Content {
    /// What sort.
    pub kind: &'static str,
    /// By which rule.
    pub rule: Arc<str>,
    /// Where, as a JSON pointer.
    pub place: String,
}

impl Screen {
    /// Judges so.
    pub fn new(
        judge: impl Fn(&UpstreamId, Option<ListKind>, &Json, Look) -> Screened + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(judge)))
    }

    pub(super) fn look(
        &self,
        upstream: &UpstreamId,
        kind: Option<ListKind>,
        definition: &Json,
    ) -> Screened {
        self.0.as_ref().map_or_else(Screened::default, |judge| {
            judge(upstream, kind, definition, Look::First)
        })
    }

    /// What in a definition only may be an attempt on the model. Nothing is noted.
    pub fn doubt(
        &self,
        upstream: &UpstreamId,
        kind: Option<ListKind>,
        definition: &Json,
    ) -> Option<Content> {
        let judge = self.0.as_ref()?;
        judge(upstream, kind, definition, Look::Again).doubt
    }
}

impl PartialEq for Screen {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Screen {}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Screen(..)"
        } else {
            "Screen"
        })
    }
}
