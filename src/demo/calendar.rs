//! *calendar*: events and outgoing mail, kept in memory and shared by all sessions.
//!
//! Offers a confirmation by the user (`send_email`), a question to a model (`draft_invitation`) and resources that change
//! (`calendar://agenda`, `calendar://outbox`). No mail leaves the process, and nothing outlives it.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    frame::{Object, Refusal},
    places::{self, Date},
    schema,
    server::{CHANGES_KEPT, Card, Change, DemoServer, Listing, structured, text, text_contents},
    turn::{Choice, Stop, Turn},
};

const AGENDA: &str = "calendar://agenda";
const OUTBOX: &str = "calendar://outbox";
const HOLIDAYS: &str = "calendar://holidays";
const EVENT: &str = "calendar://events/{id}";
const DAY: &str = "calendar://days/{date}";

/// Most events; one more is refused.
const MOST_EVENTS: usize = 100;
/// Most mails in the outbox; the oldest goes first.
const MOST_MAILS: usize = 20;

/// The calendar server.
pub(super) struct Calendar {
    /// Events and mails, guarded for one look or change at a time.
    book: Mutex<Book>,
    changes: broadcast::Sender<Change>,
}

#[derive(Default)]
struct Book {
    events: BTreeMap<u32, Event>,
    last: u32,
    outbox: Vec<Value>,
}

#[derive(Clone)]
struct Event {
    title: String,
    date: Date,
    time: String,
    attendees: Vec<String>,
}

impl Calendar {
    pub(super) fn new() -> Self {
        let mut book = Book::default();
        for (title, date, time) in [
            ("Team breakfast", "2026-09-01", "09:00"),
            ("Dentist", "2026-09-03", "14:30"),
            ("Flight to Tokyo", "2026-09-12", "11:20"),
        ] {
            if let Some(date) = Date::parse(date) {
                book.add(Event::new(title, date, time, &[]));
            }
        }
        Self {
            book: Mutex::new(book),
            changes: broadcast::Sender::new(CHANGES_KEPT),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, uri: &str) {
        drop(self.changes.send(Change::Resource(uri.to_owned()))); // nobody may be listening
    }

    fn create(&self, arguments: &Object) -> Result<Value, Stop> {
        let date = text(arguments, "date").and_then(Date::parse);
        let date = date.ok_or_else(|| Stop::failed("argument `date` is not a date"))?;
        let time = text(arguments, "time").unwrap_or("09:00");
        if !is_time(time) {
            return Err(Stop::failed("argument `time` is not a time like 14:30"));
        }
        let attendees = arguments.get("attendees").and_then(Value::as_array);
        let attendees: Vec<&str> = attendees
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let title = text(arguments, "title").unwrap_or_default();
        let created = {
            let mut book = self.book();
            if book.events.len() >= MOST_EVENTS {
                return Err(Stop::failed(format!(
                    "the calendar is full: it holds {MOST_EVENTS} events"
                )));
            }
            let id = book.add(Event::new(title, date, time, &attendees));
            book.one(id)
        };
        self.tell(AGENDA);
        Ok(structured(created.unwrap_or_default()))
    }

    fn delete(&self, arguments: &Object) -> Result<Value, Stop> {
        let id = id_of(arguments)?;
        let removed = self.book().events.remove(&id);
        let removed = removed.ok_or_else(|| Stop::Failed(no_event(id)))?;
        self.tell(AGENDA);
        Ok(structured(removed.to_json(id)))
    }

    fn list(&self, arguments: &Object) -> Value {
        let day = |name: &str| text(arguments, name).and_then(Date::parse);
        let (from, to) = (day("from"), day("to"));
        let events = self.book().all(|event| {
            from.is_none_or(|from| event.date >= from) && to.is_none_or(|to| event.date <= to)
        });
        structured(json!({"events": events}))
    }

    async fn send(&self, arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
        let part = |name: &str| text(arguments, name).unwrap_or_default();
        let (to, subject, body) = (part("to"), part("subject"), part("body"));
        if !to.contains('@') {
            return Err(Stop::failed(format!(
                "argument `to`: {to:?} is not a mail address"
            )));
        }
        let message = format!("Send the mail {subject:?} to {to}?");
        let form = json!({
            "type": "object",
            "properties": {"send": {"type": "boolean", "title": "Send it", "default": false}},
            "required": ["send"],
        });
        match turn.elicit("send", message, form).await? {
            Choice::Accepted(form) if form.get("send") == Some(&true.into()) => {}
            Choice::Accepted(_) | Choice::Declined => {
                return Err(Stop::failed(
                    "the user did not want it sent; no mail was sent",
                ));
            }
            Choice::Cancelled => {
                return Err(Stop::failed("the user gave no answer; no mail was sent"));
            }
        }
        {
            let mut book = self.book();
            if book.outbox.len() >= MOST_MAILS {
                book.outbox.remove(0);
            }
            book.outbox
                .push(json!({"to": to, "subject": subject, "body": body}));
        }
        self.tell(OUTBOX);
        Ok(structured(
            json!({"sent": true, "to": to, "subject": subject}),
        ))
    }

    async fn draft(&self, arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
        let id = id_of(arguments)?;
        let event = self
            .book()
            .one(id)
            .ok_or_else(|| Stop::Failed(no_event(id)))?;
        let tone = text(arguments, "tone").unwrap_or("friendly");
        let system = "You write short invitations. Answer with the invitation only.";
        let prompt = format!("Write a {tone} invitation to this event: {event}");
        let sampled = turn.sample("invitation", system, prompt).await?;
        Ok(structured(
            json!({"event": id, "invitation": sampled.text, "model": sampled.model}),
        ))
    }
}

impl DemoServer for Calendar {
    fn card(&self) -> Card {
        Card {
            name: "usher-demo-calendar",
            title: "Calendar (demo)",
            instructions: "Events and mail, in memory only. The present is 2026-09-01. `send_email` asks the user before it \
                           puts a mail into the outbox, where it stays.",
            tools: Listing::Fixed,
        }
    }

    fn tools(&self) -> Vec<Value> {
        let day = |what: &str| json!({"type": "string", "format": "date", "description": what});
        let words = |longest: u64, what: &str| json!({"type": "string", "minLength": 1, "maxLength": longest, "description": what});
        let id = json!({"type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "Id of an event"});
        vec![
            json!({
                "name": "create_event",
                "title": "Create an event",
                "description": "Puts an event into the calendar.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "title": words(200, "What it is"),
                        "date": day("Its day, e.g. 2026-09-12"),
                        "time": words(5, "When it starts, e.g. 14:30; default 09:00"),
                        "attendees": {"type": "array", "items": words(100, "A mail address"), "maxItems": 20},
                    },
                    "required": ["title", "date"],
                    "additionalProperties": false,
                },
                "outputSchema": Event::schema(),
                "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false},
            }),
            json!({
                "name": "list_events",
                "title": "List events",
                "description": "The events of some days, or all of them, by day and time.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"from": day("First day"), "to": day("Last day")},
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {"events": {"type": "array", "items": Event::schema()}},
                    "required": ["events"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            }),
            json!({
                "name": "delete_event",
                "title": "Delete an event",
                "description": "Removes an event from the calendar and returns it.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"id": id},
                    "required": ["id"],
                    "additionalProperties": false,
                },
                "outputSchema": Event::schema(),
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false},
            }),
            json!({
                "name": "send_email",
                "title": "Send a mail",
                "description": "Asks the user to confirm, then puts a mail into the outbox. It never leaves the demo.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "to": words(100, "A mail address"),
                        "subject": words(200, "Its subject"),
                        "body": words(5_000, "Its text"),
                    },
                    "required": ["to", "subject", "body"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "sent": {"type": "boolean"},
                        "to": {"type": "string"},
                        "subject": {"type": "string"},
                    },
                    "required": ["sent", "to", "subject"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true},
            }),
            json!({
                "name": "draft_invitation",
                "title": "Draft an invitation",
                "description": "Has the client's model write an invitation to an event.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"id": id, "tone": {"type": "string", "enum": ["friendly", "formal", "brief"]}},
                    "required": ["id"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "event": {"type": "integer"},
                        "invitation": {"type": "string"},
                        "model": {"type": "string"},
                    },
                    "required": ["event", "invitation", "model"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            }),
        ]
    }

    fn prompts(&self) -> Vec<Value> {
        vec![
            json!({
                "name": "prepare_day",
                "title": "Prepare a day",
                "description": "What to get ready for a day, with its events attached.",
                "arguments": [{"name": "date", "title": "Day", "description": "Like 2026-09-12", "required": true}],
            }),
            json!({
                "name": "announce_event",
                "title": "Announce an event",
                "description": "A mail that announces an event, which is attached.",
                "arguments": [{"name": "id", "title": "Event", "description": "Id of an event", "required": true}],
            }),
        ]
    }

    fn resources(&self) -> Vec<Value> {
        vec![
            json!({"uri": AGENDA, "name": "agenda", "title": "Agenda",
                "description": "All events; subscribe to hear of changes", "mimeType": "application/json"}),
            json!({"uri": OUTBOX, "name": "outbox", "title": "Outbox",
                "description": "Mails that were sent, which here means kept", "mimeType": "application/json"}),
            json!({"uri": HOLIDAYS, "name": "holidays", "title": "Public holidays",
                "description": "Some days off", "mimeType": "text/plain"}),
        ]
    }

    fn templates(&self) -> Vec<Value> {
        vec![
            json!({"uriTemplate": EVENT, "name": "event", "title": "One event", "mimeType": "application/json"}),
            json!({"uriTemplate": DAY, "name": "day", "title": "The events of a day", "mimeType": "application/json"}),
        ]
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Object,
        turn: &'a Turn,
    ) -> BoxFuture<'a, Result<Value, Stop>> {
        Box::pin(async move {
            match tool {
                "create_event" => self.create(arguments),
                "list_events" => Ok(self.list(arguments)),
                "delete_event" => self.delete(arguments),
                "send_email" => self.send(arguments, turn).await,
                "draft_invitation" => self.draft(arguments, turn).await,
                _ => Err(Refusal::invalid(format!("unknown tool: {tool}")).into()),
            }
        })
    }

    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Stop> {
        let (uri, words) = if name == "prepare_day" {
            let date = text(arguments, "date").unwrap_or_default();
            (
                format!("calendar://days/{date}"),
                format!("What should I get ready for {date}? My events are attached."),
            )
        } else {
            let id = text(arguments, "id").unwrap_or_default();
            (
                format!("calendar://events/{id}"),
                "Write a mail that announces the event attached.".to_owned(),
            )
        };
        let nothing = || Refusal::invalid(format!("{name}: there is no such day or event"));
        let contents = self.read(&uri).ok_or_else(nothing)?;
        Ok(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": words}},
            {"role": "user", "content": {"type": "resource", "resource": contents}},
        ]}))
    }

    fn read(&self, uri: &str) -> Option<Value> {
        let contents = match uri {
            AGENDA => self.book().all(|_| true),
            OUTBOX => self.book().outbox.clone().into(),
            HOLIDAYS => {
                let days = "2026-11-01 All Saints\n2026-12-25 Christmas\n2027-01-01 New Year\n";
                return Some(text_contents(uri, "text/plain", days));
            }
            _ => {
                if let Some([date]) = places::segments("calendar://days/", uri) {
                    let date = Date::parse(&date)?;
                    self.book().all(|event| event.date == date)
                } else {
                    let [id] = places::segments("calendar://events/", uri)?;
                    self.book().one(id.parse().ok()?)?
                }
            }
        };
        Some(text_contents(uri, "application/json", contents.to_string()))
    }

    fn complete(&self, _of: &str, argument: &str, typed: &str, _given: &Object) -> Vec<String> {
        let book = self.book();
        let mut values: Vec<String> = match argument {
            "id" => book.events.keys().map(u32::to_string).collect(),
            "date" => book
                .events
                .values()
                .map(|event| event.date.to_string())
                .collect(),
            _ => Vec::new(),
        };
        values.retain(|value| value.starts_with(typed));
        values.dedup();
        values
    }

    fn is_watchable(&self, uri: &str) -> bool {
        uri == AGENDA || uri == OUTBOX
    }

    fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }
}

impl Book {
    fn add(&mut self, event: Event) -> u32 {
        self.last += 1;
        self.events.insert(self.last, event);
        self.last
    }

    fn one(&self, id: u32) -> Option<Value> {
        self.events.get(&id).map(|event| event.to_json(id))
    }

    /// The events that fit, by day and time.
    fn all(&self, fits: impl Fn(&Event) -> bool) -> Value {
        let mut events: Vec<(&u32, &Event)> = self
            .events
            .iter()
            .filter(|(_, event)| fits(event))
            .collect();
        events.sort_by_key(|(id, event)| (event.date, event.time.clone(), **id));
        events
            .into_iter()
            .map(|(id, event)| event.to_json(*id))
            .collect()
    }
}

impl Event {
    fn new(title: &str, date: Date, time: &str, attendees: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            date,
            time: time.to_owned(),
            attendees: attendees.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    fn to_json(&self, id: u32) -> Value {
        json!({
            "id": id,
            "title": self.title,
            "date": self.date.to_string(),
            "time": self.time,
            "attendees": self.attendees,
        })
    }

    /// The JSON Schema of [`Event::to_json`].
    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "title": {"type": "string"},
                "date": {"type": "string", "format": "date"},
                "time": {"type": "string"},
                "attendees": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["id", "title", "date", "time", "attendees"],
            "additionalProperties": false,
        })
    }
}

fn id_of(arguments: &Object) -> Result<u32, Stop> {
    let id = arguments.get("id").and_then(schema::integer);
    let id = id.and_then(|id| u32::try_from(id).ok());
    id.ok_or_else(|| Stop::failed("argument `id` is not the id of an event"))
}

fn no_event(id: u32) -> String {
    format!("no event {id}; `list_events` lists those there are")
}

fn is_time(text: &str) -> bool {
    let number = |part: &str, below: u8| {
        part.len() == 2
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|n| n < below)
    };
    text.split_once(':')
        .is_some_and(|(hour, minute)| number(hour, 24) && number(minute, 60))
}
