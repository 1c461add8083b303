//! A client that wants to hear of changes, in the manner of its era.

use serde_json::{Value, json};
use usher::protocol::Era;

use super::{
    client::Client,
    eventually,
    json::{parse, quote},
    talk::Talk,
};

/// Open ears of a client. Dropping it closes them.
pub(crate) struct Watch {
    talk: Talk,
    /// The id of the listen; `None` in the handshake era.
    subscription: Option<Value>,
    /// What is in force, in the stateless era.
    pub(crate) acknowledged: Value,
}

impl Client {
    /// Listens for changes of these lists (`tools`, `prompts`, `resources`) and resources; all of them must be granted.
    pub(crate) async fn watch(&self, lists: &[&str], uris: &[&str]) -> Watch {
        if self.revision.era() == Era::Legacy {
            let talk = self.stream(None).await;
            assert_eq!(talk.status, 200);
            for uri in uris {
                let params = format!(r#"{{"uri":{}}}"#, quote(uri));
                // What a server does not confirm in time is not in force: on a busy machine that takes another try.
                eventually("the subscription is in force", || async {
                    let answer = self.ask("resources/subscribe", &params).await;
                    parse(answer.message())["result"].is_object().then_some(())
                })
                .await;
            }
            return Watch {
                talk,
                subscription: None,
                acknowledged: Value::Null,
            };
        }
        let wanted = parse(&listen_params(lists, uris))["notifications"].clone();
        eventually("all of the listen is in force", || async {
            let watch = self.partial_watch(lists, uris).await;
            (watch.acknowledged == wanted).then_some(watch)
        })
        .await
    }

    /// A listen of the stateless era, acknowledged in whatever part.
    pub(crate) async fn partial_watch(&self, lists: &[&str], uris: &[&str]) -> Watch {
        let params = listen_params(lists, uris);
        let ask = self.ask("subscriptions/listen", &params);
        let id = parse(&ask.id);
        let mut talk = ask.begin().await;
        let first = parse(&talk.hear().await);
        assert_eq!(
            first["method"], "notifications/subscriptions/acknowledged",
            "{first}"
        );
        assert_eq!(first["params"]["_meta"], json!({SUBSCRIPTION: id}));
        Watch {
            talk,
            subscription: Some(id),
            acknowledged: first["params"]["notifications"].clone(),
        }
    }
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen_params(lists: &[&str], uris: &[&str]) -> String {
    let mut wanted = serde_json::Map::new();
    for list in lists {
        wanted.insert(format!("{list}ListChanged"), true.into());
    }
    if !uris.is_empty() {
        wanted.insert("resourceSubscriptions".into(), json!(uris));
    }
    json!({ "notifications": wanted }).to_string()
}

impl Watch {
    /// The next notification: its method after `notifications/`, and its params without our own tag, which must be right.
    pub(crate) async fn change(&mut self) -> (String, Value) {
        let message = self.talk.hear().await;
        self.untagged(&message)
    }

    /// The next change of a resource: its URI. Changes of lists before it are passed over.
    pub(crate) async fn resource(&mut self) -> String {
        loop {
            let (method, params) = self.change().await;
            if method == "resources/updated" {
                return params["uri"].as_str().unwrap().to_owned();
            }
        }
    }

    /// The end of the stream: the result that closes it, if one came.
    pub(crate) async fn end(&mut self) -> Option<Value> {
        let last = parse(&self.talk.next().await?);
        assert!(last["method"].is_null(), "{last}");
        assert_eq!(self.talk.next().await, None);
        Some(last)
    }

    fn untagged(&self, message: &str) -> (String, Value) {
        let mut message = parse(message);
        let method = message["method"].as_str().map(str::to_owned);
        let method = method.unwrap_or_else(|| panic!("no notification: {message}"));
        let method = method.strip_prefix("notifications/").unwrap().to_owned();
        let params = &mut message["params"];
        let tag = params
            .get_mut("_meta")
            .and_then(|meta| meta.as_object_mut()?.remove(SUBSCRIPTION));
        assert_eq!(tag, self.subscription, "{method} {params}");
        if let Some(object) = params.as_object_mut()
            && object.get("_meta").is_some_and(|meta| *meta == json!({}))
        {
            object.remove("_meta");
        }
        (method, params.take())
    }
}
