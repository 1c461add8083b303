//! *travel*: flights between the demo's cities, and one trip basket per process.
//!
//! Offers a tool that appears while the basket holds something (`book_trip`), which also reports progress, a question to
//! the user (`clear_trip`), and a resource that changes (`travel://trip`). Nothing is booked anywhere.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::{
    forecast::Forecast,
    frame::{Object, Refusal},
    places::{self, Date, PLACES, Place, TODAY, number_of},
    schema,
    server::{CHANGES_KEPT, Card, Change, DemoServer, Listing, structured, text, text_contents},
    turn::{Choice, Stop, Turn},
};

const TRIP: &str = "travel://trip";
const DESTINATIONS: &str = "travel://destinations";
const PACKING: &str = "travel://guides/packing";
const FLIGHTS: &str = "travel://flights/{origin}/{destination}";
const OUTLOOK: &str = "travel://outlook/{city}/{date}";

/// Most flights in the basket; one more is refused.
const ROOM: usize = 8;
/// Flights per pair of cities.
const DAILY: u64 = 3;
const CARRIERS: [&str; 4] = ["Usher Air", "Meridian", "Northwind", "Blue Kite"];

const PACKING_GUIDE: &str = "# Packing\n\n- Passport, tickets, a charger with the right plug\n- One layer more than the \
                             forecast asks for\n- An umbrella when the chance of rain is above 50 %\n";

/// The travel server.
pub(super) struct Travel {
    /// The basket, guarded for one look or change at a time.
    basket: Mutex<Vec<Seat>>,
    changes: broadcast::Sender<Change>,
}

/// A flight in the basket.
#[derive(Clone, PartialEq)]
struct Seat {
    flight: Flight,
    travellers: i64,
}

#[derive(Clone, PartialEq)]
struct Flight {
    origin: &'static Place,
    destination: &'static Place,
    /// Which of the day's flights, from 1.
    number: u64,
}

impl Travel {
    pub(super) fn new() -> Self {
        Self {
            basket: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
        }
    }

    fn basket(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.basket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the basket and, unless the edit refuses, tells of it: of the tool list too, when `book_trip` comes or goes.
    fn change(
        &self,
        edit: impl FnOnce(&mut Vec<Seat>) -> Result<Value, Stop>,
    ) -> Result<Value, Stop> {
        let (done, turned) = {
            let mut basket = self.basket();
            let was_empty = basket.is_empty();
            let done = edit(&mut basket)?;
            (done, was_empty != basket.is_empty())
        };
        let listed = turned.then_some(Change::ToolList);
        for change in listed
            .into_iter()
            .chain([Change::Resource(TRIP.to_owned())])
        {
            drop(self.changes.send(change)); // nobody may be listening
        }
        Ok(structured(done))
    }

    fn trip(&self) -> Value {
        trip_of(&self.basket())
    }

    fn add(&self, arguments: &Object) -> Result<Value, Stop> {
        let id = text(arguments, "flight").unwrap_or_default();
        let no_flight = || format!("no flight {id:?}; `search_flights` lists those there are");
        let flight = Flight::parse(id).ok_or_else(|| Stop::Failed(no_flight()))?;
        let travellers = arguments
            .get("travellers")
            .and_then(schema::integer)
            .unwrap_or(1);
        self.change(|basket| {
            if basket.len() >= ROOM {
                return Err(Stop::failed(format!(
                    "the trip is full: it holds {ROOM} flights"
                )));
            }
            basket.push(Seat { flight, travellers });
            Ok(trip_of(basket))
        })
    }

    async fn clear(&self, arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
        let count = self.basket().len();
        if arguments.get("confirm") != Some(&true.into()) && count > 0 {
            let message = format!("Remove all {count} flights from the trip?");
            let form = json!({
                "type": "object",
                "properties": {"remove": {"type": "boolean", "title": "Remove them all", "default": false}},
                "required": ["remove"],
            });
            match turn.elicit("remove", message, form).await? {
                Choice::Accepted(form) if form.get("remove") == Some(&true.into()) => {}
                Choice::Accepted(_) | Choice::Declined | Choice::Cancelled => {
                    return Err(Stop::failed("the user kept the trip; nothing was removed"));
                }
            }
        }
        self.change(|basket| {
            basket.clear();
            Ok(trip_of(basket))
        })
    }

    async fn book(&self, turn: &Turn) -> Result<Value, Stop> {
        let seats = self.basket().clone();
        let total = seats.len();
        for (done, seat) in seats.iter().enumerate() {
            turn.step(done, total, &format!("booking {}", seat.flight.id()))
                .await;
        }
        let trip = trip_of(&seats);
        let code = format!("USH{:05}", number_of(&[&trip.to_string()]) % 100_000);
        turn.step(total, total, "booked").await;
        self.change(|basket| {
            if *basket != seats {
                return Err(Stop::failed(
                    "the trip changed while it was being booked; nothing was booked",
                ));
            }
            basket.clear();
            Ok(json!({"booking": code, "flights": trip["flights"], "total_eur": trip["total_eur"]}))
        })
    }
}

impl DemoServer for Travel {
    fn card(&self) -> Card {
        Card {
            name: "usher-demo-travel",
            title: "Travel (demo)",
            instructions: "Search flights between the demo's cities, collect them in the trip, and book it. \
                           `book_trip` is listed while the trip holds a flight.",
            tools: Listing::Changing,
        }
    }

    fn tools(&self) -> Vec<Value> {
        let city = |what: &str| json!({"type": "string", "minLength": 1, "maxLength": 40, "description": what});
        let mut tools = vec![
            json!({
                "name": "search_flights",
                "title": "Search flights",
                "description": "The flights of a day from one city to another. Cities are listed in travel://destinations.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "origin": city("City to leave from, e.g. Paris"),
                        "destination": city("City to go to, e.g. Tokyo"),
                        "date": {"type": "string", "format": "date", "description": "Day of the flight; default 2026-09-01"},
                        "max_price_eur": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": "Leave out dearer flights"},
                    },
                    "required": ["origin", "destination"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "date": {"type": "string", "format": "date"},
                        "flights": {"type": "array", "items": Flight::schema()},
                    },
                    "required": ["date", "flights"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            }),
            json!({
                "name": "add_to_trip",
                "title": "Add a flight to the trip",
                "description": "Puts a flight into the trip basket of this server process.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "flight": {"type": "string", "minLength": 1, "maxLength": 20, "description": "Id of a flight, e.g. PAR-TYO-1"},
                        "travellers": {"type": "integer", "minimum": 1, "maximum": 9, "description": "Seats to take; default 1"},
                    },
                    "required": ["flight"],
                    "additionalProperties": false,
                },
                "outputSchema": trip_schema(),
                "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false},
            }),
            json!({
                "name": "view_trip",
                "title": "View the trip",
                "description": "The flights in the trip basket and what they cost.",
                "inputSchema": {"type": "object", "additionalProperties": false},
                "outputSchema": trip_schema(),
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            }),
            json!({
                "name": "clear_trip",
                "title": "Clear the trip",
                "description": "Removes all flights from the trip. Asks the user to confirm, unless `confirm` is true.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"confirm": {"type": "boolean", "description": "True: do not ask"}},
                    "additionalProperties": false,
                },
                "outputSchema": trip_schema(),
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false},
            }),
        ];
        if !self.basket().is_empty() {
            tools.push(json!({
                "name": "book_trip",
                "title": "Book the trip",
                "description": "Books the flights in the trip, one after the other, reporting progress, and empties it. \
                                Listed only while the trip holds a flight.",
                "inputSchema": {"type": "object", "additionalProperties": false},
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "booking": {"type": "string"},
                        "flights": {"type": "array", "items": seat_schema()},
                        "total_eur": {"type": "integer"},
                    },
                    "required": ["booking", "flights", "total_eur"],
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false},
            }));
        }
        tools
    }

    fn prompts(&self) -> Vec<Value> {
        vec![
            json!({
                "name": "plan_vacation",
                "title": "Plan a vacation",
                "description": "A plan for some days away, with flights, the weather to expect and a packing list attached.",
                "arguments": [
                    {"name": "origin", "title": "From", "description": "City you leave from", "required": true},
                    {"name": "destination", "title": "To", "description": "City you go to", "required": true},
                    {"name": "date", "title": "Day of departure", "description": "Like 2026-09-12", "required": true},
                    {"name": "budget", "title": "Budget", "description": "In euros", "required": false},
                ],
            }),
            json!({
                "name": "review_trip",
                "title": "Review the trip",
                "description": "Asks for a second opinion on the trip as it stands.",
            }),
        ]
    }

    fn resources(&self) -> Vec<Value> {
        vec![
            json!({"uri": DESTINATIONS, "name": "destinations", "title": "Destinations",
                "description": "Every city the demo knows", "mimeType": "application/json"}),
            json!({"uri": TRIP, "name": "trip", "title": "The trip",
                "description": "What is in the basket; changes with it", "mimeType": "application/json"}),
            json!({"uri": PACKING, "name": "packing", "title": "Packing guide",
                "mimeType": "text/markdown", "size": PACKING_GUIDE.len()}),
        ]
    }

    fn templates(&self) -> Vec<Value> {
        vec![
            json!({"uriTemplate": FLIGHTS, "name": "flights", "title": "Flights of a day",
                "description": "Flights from one city to another", "mimeType": "application/json"}),
            json!({"uriTemplate": OUTLOOK, "name": "outlook", "title": "Weather outlook",
                "description": "The weather to expect in a city on a day", "mimeType": "application/json"}),
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
                "search_flights" => search(arguments),
                "add_to_trip" => self.add(arguments),
                "view_trip" => Ok(structured(self.trip())),
                "clear_trip" => self.clear(arguments, turn).await,
                "book_trip" => self.book(turn).await,
                _ => Err(Refusal::invalid(format!("unknown tool: {tool}")).into()),
            }
        })
    }

    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Stop> {
        if name == "review_trip" {
            let words = "Here is the trip I put together. What would you change, and why?";
            return Ok(
                json!({"description": "A second opinion on the trip", "messages": [
                    {"role": "user", "content": {"type": "text", "text": words}},
                    attached(&text_contents(TRIP, "application/json", self.trip().to_string())),
                ]}),
            );
        }
        let (origin, destination) = (city(arguments, "origin")?, city(arguments, "destination")?);
        let date = text(arguments, "date").unwrap_or_default();
        let no_date = || {
            Refusal::invalid(format!(
                "{name}: argument `date` is not a date like 2026-09-12"
            ))
        };
        let date = Date::parse(date).ok_or_else(no_date)?;
        let budget = text(arguments, "budget").map_or(String::new(), |budget| {
            format!(" My budget is {budget} euros.")
        });
        let words = format!(
            "Plan a vacation for me: from {} to {}, leaving on {date}.{budget} Use the flights, the weather outlook and \
             the packing guide attached, and say what each day is for.",
            origin.name, destination.name
        );
        let flights = format!(
            "travel://flights/{}/{}",
            origin.segment(),
            destination.segment()
        );
        let outlook = format!("travel://outlook/{}/{date}", destination.segment());
        let attachments = [flights.as_str(), &outlook, PACKING].map(|uri| self.read(uri));
        let mut messages =
            vec![json!({"role": "user", "content": {"type": "text", "text": words}})];
        messages.extend(attachments.iter().flatten().map(attached));
        Ok(
            json!({"description": format!("A vacation in {}", destination.name), "messages": messages}),
        )
    }

    fn read(&self, uri: &str) -> Option<Value> {
        let json = "application/json";
        match uri {
            TRIP => return Some(text_contents(uri, json, self.trip().to_string())),
            PACKING => return Some(text_contents(uri, "text/markdown", PACKING_GUIDE)),
            DESTINATIONS => {
                let one = |place: &Place| json!({"city": place.name, "country": place.country, "code": place.code});
                let all: Value = PLACES.iter().map(one).collect();
                return Some(text_contents(uri, json, all.to_string()));
            }
            _ => {}
        }
        if let Some([origin, destination]) = places::segments("travel://flights/", uri) {
            let (origin, destination) = (Place::named(&origin)?, Place::named(&destination)?);
            let flights: Value = flights(origin, destination)
                .map(|flight| flight.to_json())
                .collect();
            return Some(text_contents(uri, json, flights.to_string()));
        }
        let [city, date] = places::segments("travel://outlook/", uri)?;
        let outlook = Forecast::of(Place::named(&city)?, Date::parse(&date)?);
        Some(text_contents(uri, json, outlook.to_json().to_string()))
    }

    fn complete(&self, _of: &str, argument: &str, typed: &str, given: &Object) -> Vec<String> {
        match argument {
            "origin" | "destination" | "city" => {
                let other = if argument == "origin" {
                    "destination"
                } else {
                    "origin"
                };
                let other = text(given, other)
                    .and_then(Place::named)
                    .map(|place| place.name);
                let mut values = places::starting_with(typed);
                values.retain(|name| Some(name.as_str()) != other); // nobody flies to where they are
                values
            }
            "date" => Date::starting_with(typed),
            "budget" => ["500", "1000", "2000", "5000"]
                .into_iter()
                .filter(|sum| sum.starts_with(typed))
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    }

    fn is_watchable(&self, uri: &str) -> bool {
        uri == TRIP
    }

    fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }
}

impl Flight {
    /// Reads an id like `PAR-TYO-1`.
    fn parse(id: &str) -> Option<Self> {
        let mut parts = id.split('-');
        let (origin, destination) = (Place::coded(parts.next()?)?, Place::coded(parts.next()?)?);
        let number = parts.next()?;
        let found = flights(origin, destination).find(|flight| flight.number.to_string() == number);
        found.filter(|_| parts.next().is_none())
    }

    fn id(&self) -> String {
        format!(
            "{}-{}-{}",
            self.origin.code, self.destination.code, self.number
        )
    }

    fn price_eur(&self) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "distances on Earth are small"
        )]
        let distance = (self.origin.distance_km(self.destination) * 0.07) as i64;
        29 + distance + (number_of(&[&self.id()]) % 60).cast_signed()
    }

    fn to_json(&self) -> Value {
        let chance = number_of(&["flight", &self.id()]);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "distances on Earth are small"
        )]
        let minutes = 35 + (self.origin.distance_km(self.destination) / 13.5) as i64;
        let hour = 6 * self.number + chance % 5;
        json!({
            "id": self.id(),
            "carrier": CARRIERS[usize::try_from(chance % 4).unwrap_or_default()],
            "origin": self.origin.name,
            "destination": self.destination.name,
            "departs": format!("{hour:02}:{:02}", chance / 7 % 12 * 5),
            "duration_minutes": minutes,
            "price_eur": self.price_eur(),
        })
    }

    /// The JSON Schema of [`Flight::to_json`].
    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "carrier": {"type": "string"},
                "origin": {"type": "string"},
                "destination": {"type": "string"},
                "departs": {"type": "string", "description": "Local time"},
                "duration_minutes": {"type": "integer"},
                "price_eur": {"type": "integer"},
            },
            "required": ["id", "carrier", "origin", "destination", "departs", "duration_minutes", "price_eur"],
            "additionalProperties": false,
        })
    }
}

fn flights(origin: &'static Place, destination: &'static Place) -> impl Iterator<Item = Flight> {
    let count = if origin == destination { 0 } else { DAILY };
    (1..=count).map(move |number| Flight {
        origin,
        destination,
        number,
    })
}

fn search(arguments: &Object) -> Result<Value, Stop> {
    let place = |name: &str| city(arguments, name).map_err(|refusal| Stop::Failed(refusal.message));
    let (origin, destination) = (place("origin")?, place("destination")?);
    let date = text(arguments, "date")
        .and_then(Date::parse)
        .unwrap_or(TODAY);
    let limit = arguments
        .get("max_price_eur")
        .and_then(schema::integer)
        .unwrap_or(i64::MAX);
    let found = flights(origin, destination).filter(|flight| flight.price_eur() <= limit);
    let found: Vec<Value> = found.map(|flight| flight.to_json()).collect();
    let mut result = structured(json!({"date": date.to_string(), "flights": found}));
    if let Some(content) = result["content"].as_array_mut() {
        content.push(json!({
            "type": "resource_link",
            "uri": format!("travel://flights/{}/{}", origin.segment(), destination.segment()),
            "name": "flights",
            "title": format!("{} to {}", origin.name, destination.name),
            "mimeType": "application/json",
        }));
    }
    Ok(result)
}

fn city(arguments: &Object, name: &str) -> Result<&'static Place, Refusal> {
    let city = text(arguments, name).unwrap_or_default();
    Place::named(city).ok_or_else(|| {
        let known = places::all_names();
        Refusal::invalid(format!(
            "argument `{name}`: no city {city:?}; known are {known}"
        ))
    })
}

/// A prompt message with a resource in it.
fn attached(contents: &Value) -> Value {
    json!({"role": "user", "content": {"type": "resource", "resource": contents}})
}

fn trip_of(basket: &[Seat]) -> Value {
    let cost = |seat: &Seat| seat.flight.price_eur() * seat.travellers;
    let one = |seat: &Seat| json!({"id": seat.flight.id(), "travellers": seat.travellers, "price_eur": cost(seat)});
    json!({
        "flights": basket.iter().map(one).collect::<Vec<_>>(),
        "total_eur": basket.iter().map(cost).sum::<i64>(),
    })
}

/// The JSON Schema of [`trip_of`].
fn trip_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "flights": {"type": "array", "items": seat_schema()},
            "total_eur": {"type": "integer"},
        },
        "required": ["flights", "total_eur"],
        "additionalProperties": false,
    })
}

fn seat_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "travellers": {"type": "integer"},
            "price_eur": {"type": "integer"},
        },
        "required": ["id", "travellers", "price_eur"],
        "additionalProperties": false,
    })
}
