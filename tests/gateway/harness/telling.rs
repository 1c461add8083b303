//! What scripted upstreams tell unasked: changes of lists and resources, on listens, streams and pipes.

use serde_json::Value;
use usher::protocol::Era;

use super::{
    PATIENCE, Upstream, eventually,
    json::{member, parse, quote},
    stage::{Out, Outlet, OutletKind},
    turn::Turn,
    within,
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Turn {
    /// Takes a listen: acknowledges all of it and keeps it open.
    pub(super) async fn listen(self) {
        let asked = member(&self.heard.params, "notifications").unwrap_or_else(|| "{}".to_owned());
        self.acknowledge(&asked).await;
    }

    /// Takes a listen: acknowledges this of it and keeps it open until the gateway closes it or the server does.
    pub(crate) async fn acknowledge(self, filter: &str) {
        let id = &self.id;
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{filter},"_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
        ))
        .await;
        self.stage.outlet(Outlet {
            session: self.heard.session.clone(),
            kind: OutletKind::Listen(self.id.clone(), parse(filter)),
            out: self.out.clone(),
        });
    }

    /// Says a message on the stream of the call's session, which must be open by now, and not on the call's.
    pub(crate) async fn say_beside(&self, message: &str) {
        let outlets = self.stage.outlets();
        let is_its = |outlet: &&Outlet| {
            matches!(outlet.kind, OutletKind::Stream) && outlet.session == self.heard.session
        };
        let its: Vec<_> = outlets.iter().filter(is_its).collect();
        assert_eq!(its.len(), 1, "each session has one stream");
        drop(its[0].out.send(Out::Frame(message.to_owned())).await);
    }

    /// Sends a request of the server's own there, and waits for the response: the whole message.
    pub(crate) async fn ask_beside(&self, method: &str, params: &str) -> Value {
        let (id, answer) = self.stage.awaiting();
        self.say_beside(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
        .await;
        let answer = within(PATIENCE, &format!("an answer to `{method}`"), answer).await;
        parse(&answer.unwrap())
    }
}

impl Upstream {
    /// Says that a list changed, to everybody who listens; waits until somebody does. The list is `tools`, `prompts` or
    /// `resources`.
    pub(crate) async fn announce(&self, list: &str) {
        let wanted = format!("{list}ListChanged");
        let method = format!("notifications/{list}/list_changed");
        self.tell(&method, "{}", |kind, _| match kind {
            OutletKind::Listen(_, filter) => filter[&wanted] == true,
            OutletKind::Whole | OutletKind::Stream => true,
        })
        .await;
    }

    /// Says that `told` was updated, to everybody who watches `watched`; waits until somebody does.
    pub(crate) async fn updated(&self, watched: &str, told: &str) {
        let params = format!(r#"{{"uri":{}}}"#, quote(told));
        self.tell(
            "notifications/resources/updated",
            &params,
            |kind, session| match kind {
                OutletKind::Listen(_, filter) => filter["resourceSubscriptions"]
                    .as_array()
                    .is_some_and(|uris| uris.iter().any(|uri| uri == watched)),
                OutletKind::Whole | OutletKind::Stream => {
                    self.stage.watches(session.unwrap_or_default(), watched)
                }
            },
        )
        .await;
    }

    /// Says something that belongs to no call, on every session of the handshake era.
    pub(crate) async fn say_unasked(&self, method: &str, params: &str) {
        let on_sessions =
            |kind: &OutletKind, _: Option<&str>| !matches!(kind, OutletKind::Listen(..));
        self.tell(method, params, on_sessions).await;
    }

    /// Sends a request of the server's own that belongs to no call, and waits for the response: the whole message.
    pub(crate) async fn ask_unasked(&self, method: &str, params: &str) -> Value {
        let (id, answer) = self.stage.awaiting();
        let outlet = within(PATIENCE, "a stream to ask on", async {
            loop {
                let news = self.stage.news();
                if let Some(outlet) = self.stage.outlets().pop() {
                    return outlet;
                }
                news.await;
            }
        })
        .await;
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        drop(outlet.out.send(Out::Frame(frame)).await);
        let answer = within(PATIENCE, &format!("an answer to `{method}`"), answer).await;
        parse(&answer.unwrap())
    }

    /// Whether anybody watches this.
    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        self.stage
            .outlets()
            .iter()
            .any(|outlet| match &outlet.kind {
                OutletKind::Listen(_, filter) => filter["resourceSubscriptions"]
                    .as_array()
                    .is_some_and(|uris| uris.iter().any(|other| other == uri)),
                OutletKind::Whole | OutletKind::Stream => {
                    let session = outlet.session.as_deref().unwrap_or_default();
                    self.stage.watches(session, uri)
                }
            })
    }

    /// How many streams this session has open.
    pub(crate) fn streams_of(&self, session: &str) -> usize {
        let outlets = self.stage.outlets();
        let its = outlets.iter().filter(|outlet| {
            matches!(outlet.kind, OutletKind::Stream) && outlet.session.as_deref() == Some(session)
        });
        its.count()
    }

    /// How many listens are open.
    pub(crate) fn listens(&self) -> usize {
        let outlets = self.stage.outlets();
        let listens = outlets
            .iter()
            .filter(|outlet| matches!(outlet.kind, OutletKind::Listen(..)));
        listens.count()
    }

    /// Waits until no older listen is heard beside the last: what is told on both is told twice.
    pub(crate) async fn one_listen_at_most(&self) {
        eventually("one listen at most", || async {
            (self.listens() < 2).then_some(())
        })
        .await;
    }

    /// Ends every listen in the orderly way: with a result.
    pub(crate) async fn end_listens(&self) {
        for outlet in self.stage.close_listens() {
            let OutletKind::Listen(id, _) = &outlet.kind else {
                continue;
            };
            let frame = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
            );
            drop(outlet.out.send(Out::Frame(frame)).await);
        }
    }

    async fn tell(
        &self,
        method: &str,
        params: &str,
        wants: impl Fn(&OutletKind, Option<&str>) -> bool,
    ) {
        let takers = async {
            loop {
                let news = self.stage.news();
                let mut takers = self.stage.outlets();
                if self.stage.revision.era() == Era::Modern {
                    takers.retain(|outlet| matches!(outlet.kind, OutletKind::Listen(..)));
                }
                takers.retain(|outlet| wants(&outlet.kind, outlet.session.as_deref()));
                if !takers.is_empty() {
                    return takers;
                }
                news.await;
            }
        };
        let takers = within(PATIENCE, &format!("somebody to tell `{method}`"), takers).await;
        let mut told: Vec<Option<String>> = Vec::new();
        for outlet in takers {
            let params = match &outlet.kind {
                OutletKind::Listen(id, _) => {
                    let comma = if params == "{}" { "" } else { "," };
                    let rest = params.strip_prefix('{').unwrap();
                    format!(r#"{{"_meta":{{"{SUBSCRIPTION}":{id}}}{comma}{rest}"#)
                }
                // Each message on one stream of a session (PROTOCOL B4).
                OutletKind::Whole | OutletKind::Stream if told.contains(&outlet.session) => {
                    continue;
                }
                OutletKind::Whole | OutletKind::Stream => {
                    told.push(outlet.session.clone());
                    params.to_owned()
                }
            };
            let frame = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            drop(outlet.out.send(Out::Frame(frame)).await);
        }
    }
}
