//! What tools ask to have in headers now, read anew for calls that were refused for theirs (PROTOCOL B3, D6).
//!
//! Guarantees: however many calls are refused, the list is read once at a time, and what came of that is good for all who wait
//! for it and for whoever comes within [`COALESCE`]; where each principal may see something else, for that principal alone. Kept
//! of a list are names and headers, of one list at a time. Deliberately absent: whether a call may go by what was read.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::Semaphore, time::Instant};

use crate::{
    call::Grantee,
    catalog::Listing,
    json::{Json, Node},
    protocol::mirror::{self, ParamHeader},
    upstream::{UpstreamError, supervisor::COALESCE},
};

/// The headers of one server's tools, as they were read last for calls that were refused.
#[derive(Debug)]
pub(super) struct Anew {
    /// Whoever has it reads.
    turn: Semaphore,
    // Held for moments, never across an await.
    last: Mutex<Option<Reading>>,
}

/// A reading that is over, however it went.
#[derive(Debug)]
struct Reading {
    /// For whom it was; `None`: for everybody.
    whose: Option<Grantee>,
    ended: Instant,
    asked: Asked,
}

/// What each tool asks for, by its server's name for it; nothing where that could not be read.
type Asked = HashMap<String, Arc<[ParamHeader]>>;

impl Default for Anew {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            last: Mutex::default(),
        }
    }
}

impl Anew {
    /// What the tool `local` asks for now, as `whose` list says, which `read` reads unless somebody just has.
    pub(super) async fn headers(
        &self,
        whose: Option<Grantee>,
        local: &str,
        read: impl Future<Output = Result<Listing, UpstreamError>>,
    ) -> Option<Arc<[ParamHeader]>> {
        let _turn = self.turn.acquire().await;
        if let Some(known) = self.known(whose.as_ref(), local) {
            return known;
        }
        let asked = read
            .await
            .map_or_else(|_| Asked::new(), |list| asked(&list));
        let headers = asked.get(local).map(Arc::clone);
        *self.last() = Some(Reading {
            whose,
            ended: Instant::now(),
            asked,
        });
        headers
    }

    /// What the last reading says of a tool, if it is good for this principal, and still.
    fn known(&self, whose: Option<&Grantee>, local: &str) -> Option<Option<Arc<[ParamHeader]>>> {
        let last = self.last();
        let last = last.as_ref()?;
        let good = last.whose.as_ref() == whose && last.ended.elapsed() < COALESCE;
        good.then(|| last.asked.get(local).map(Arc::clone))
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Reading>> {
        // It is put there whole.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the tools of a list ask for; of two of one name the first counts.
fn asked(list: &Listing) -> Asked {
    let mut all = Asked::new();
    for tool in &*list.items {
        if let Some((name, headers)) = one(tool) {
            all.entry(name).or_insert(headers);
        }
    }
    all
}

/// A tool's name and headers, if its annotations keep to the rules.
fn one(tool: &Json) -> Option<(String, Arc<[ParamHeader]>)> {
    let name = tool.root().member("name").and_then(Node::as_str)?;
    let headers = mirror::of_tool(tool).ok()?;
    Some((name.into_owned(), headers.into()))
}
