//! *weather*: forecasts for the demo's cities, and a rooftop station that measures anew every few seconds.
//!
//! Offers mirrored arguments (`get_forecast`), progress (`compare_cities`), a question to the user (`plan_outing`) and to a
//! model (`describe_weather`), and a resource that changes by itself (`weather://station/rooftop`). Its lists never change.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{sync::broadcast, time::MissedTickBehavior};

use super::{
    forecast::Forecast,
    frame::{Object, Refusal},
    places::{self, Date, PLACES, Place, TODAY, number_of},
    schema,
    server::{CHANGES_KEPT, Card, Change, DemoServer, Listing, structured, text, text_contents},
    turn::{Choice, Stop, Turn},
};

const STATION: &str = "weather://station/rooftop";
const CITIES: &str = "weather://cities";
const SUN: &str = "weather://icons/sun";
const FORECAST: &str = "weather://forecast/{city}/{date}";
const CURRENT: &str = "weather://current/{city}";

/// How often the rooftop station measures.
const MEASURING: Duration = Duration::from_secs(5);
/// Longest forecast, in days.
const LONGEST: i64 = 7;
const ACTIVITIES: [&str; 4] = ["picnic", "hike", "museum", "sailing"];
/// A yellow pixel, as PNG.
const SUN_PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4f1EKAAS9AeuRZx6bAAAAAElFTkSuQmCC";

/// The weather server.
pub(super) struct Weather {
    /// Measurements so far; the station's readings follow from their number alone.
    measured: AtomicU64,
    changes: broadcast::Sender<Change>,
}

impl Weather {
    pub(super) fn new() -> Self {
        Self {
            measured: AtomicU64::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
        }
    }

    /// Runs the rooftop station, for as long as it is polled.
    pub(super) async fn keep_measuring(&self) {
        let mut clock = tokio::time::interval(MEASURING);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        clock.tick().await; // the first is at once, and the station has its first reading
        loop {
            clock.tick().await;
            self.measure();
        }
    }

    /// Takes one measurement and tells of it.
    pub(super) fn measure(&self) {
        self.measured.fetch_add(1, Ordering::Relaxed);
        drop(self.changes.send(Change::Resource(STATION.to_owned()))); // nobody may be listening
    }

    fn reading(&self) -> Value {
        let measured = self.measured.load(Ordering::Relaxed);
        let chance = number_of(&["rooftop", &measured.to_string()]);
        json!({
            "measurement": measured,
            "temperature_c": 14 + chance % 8,
            "wind_kmh": chance / 8 % 60,
            "humidity_percent": 40 + chance / 512 % 50,
        })
    }
}

impl DemoServer for Weather {
    fn card(&self) -> Card {
        Card {
            name: "usher-demo-weather",
            title: "Weather (demo)",
            instructions: "Weather for the demo's cities. It follows from city and day alone, and it is invented; the \
                           present is 2026-09-01.",
            tools: Listing::Fixed,
        }
    }

    fn tools(&self) -> Vec<Value> {
        let city = json!({"type": "string", "minLength": 1, "maxLength": 40, "description": "A city, e.g. Paris"});
        let date =
            json!({"type": "string", "format": "date", "description": "A day, e.g. 2026-09-12"});
        let harmless = json!({"readOnlyHint": true, "openWorldHint": false});
        let mut mirrored_city = city.clone();
        mirrored_city["x-mcp-header"] = "City".into();
        vec![
            json!({
                "name": "get_weather",
                "title": "Current weather",
                "description": "The weather in a city at the demo's present, 2026-09-01 at noon.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "city": city,
                        "units": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Default celsius"},
                    },
                    "required": ["city"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "country": {"type": "string"},
                        "observed": {"type": "string"},
                        "conditions": {"type": "string"},
                        "temperature": {"type": "integer"},
                        "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                        "wind_kmh": {"type": "integer"},
                    },
                    "required": ["city", "country", "observed", "conditions", "temperature", "units", "wind_kmh"],
                    "additionalProperties": false,
                },
                "annotations": harmless,
            }),
            json!({
                "name": "get_forecast",
                "title": "Forecast",
                "description": "The forecast for a city, day by day. City and days are repeated in headers, so that a proxy can \
                                route by them.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "city": mirrored_city,
                        "date": date,
                        "days": {"type": "integer", "minimum": 1, "maximum": LONGEST, "x-mcp-header": "Days",
                            "description": "How many days; default 1"},
                    },
                    "required": ["city", "date"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {"days": {"type": "array", "items": Forecast::schema()}},
                    "required": ["days"],
                    "additionalProperties": false,
                },
                "annotations": harmless,
            }),
            json!({
                "name": "compare_cities",
                "title": "Compare cities",
                "description": "Ranks cities by how pleasant a day will be there, reporting progress city by city.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "cities": {"type": "array", "items": city, "minItems": 2, "maxItems": PLACES.len()},
                        "date": date,
                    },
                    "required": ["cities", "date"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {"best_first": {"type": "array", "items": Forecast::schema()}},
                    "required": ["best_first"],
                    "additionalProperties": false,
                },
                "annotations": harmless,
            }),
            json!({
                "name": "plan_outing",
                "title": "Plan an outing",
                "description": "Asks the user what to do on a day, and says whether the weather suits it.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"city": city, "date": date},
                    "required": ["city", "date"],
                    "additionalProperties": false,
                },
                "outputSchema": {
                    "type": "object",
                    "properties": {
                        "activity": {"type": "string", "enum": ACTIVITIES},
                        "suitable": {"type": "boolean"},
                        "forecast": Forecast::schema(),
                    },
                    "required": ["activity", "suitable", "forecast"],
                    "additionalProperties": false,
                },
                "annotations": harmless,
            }),
            json!({
                "name": "describe_weather",
                "title": "Describe the weather",
                "description": "Has the client's model put a forecast into one friendly sentence.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"city": city, "date": date},
                    "required": ["city", "date"],
                    "additionalProperties": false,
                },
                "annotations": harmless,
            }),
        ]
    }

    fn prompts(&self) -> Vec<Value> {
        vec![json!({
            "name": "what_to_wear",
            "title": "What to wear",
            "description": "What to put on for a day in a city, with its forecast attached.",
            "arguments": [
                {"name": "city", "title": "City", "description": "Where you are", "required": true},
                {"name": "date", "title": "Day", "description": "Like 2026-09-12; default the demo's present", "required": false},
            ],
        })]
    }

    fn resources(&self) -> Vec<Value> {
        vec![
            json!({"uri": CITIES, "name": "cities", "title": "Cities",
                "description": "Where the demo has weather", "mimeType": "application/json"}),
            json!({"uri": STATION, "name": "rooftop", "title": "Rooftop station",
                "description": "Measures every 5 seconds; subscribe to hear of it", "mimeType": "application/json"}),
            json!({"uri": SUN, "name": "sun", "title": "A very small sun", "mimeType": "image/png"}),
        ]
    }

    fn templates(&self) -> Vec<Value> {
        vec![
            json!({"uriTemplate": FORECAST, "name": "forecast", "title": "Forecast of a day",
                "description": "The forecast for a city on a day", "mimeType": "application/json"}),
            json!({"uriTemplate": CURRENT, "name": "current", "title": "Current weather",
                "description": "The weather in a city at the demo's present", "mimeType": "application/json"}),
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
                "get_weather" => current(arguments),
                "get_forecast" => forecast(arguments),
                "compare_cities" => compare(arguments, turn).await,
                "plan_outing" => outing(arguments, turn).await,
                "describe_weather" => describe(arguments, turn).await,
                _ => Err(Refusal::invalid(format!("unknown tool: {tool}")).into()),
            }
        })
    }

    fn prompt(&self, name: &str, arguments: &Object) -> Result<Value, Stop> {
        let place = city(arguments).map_err(|why| Refusal::invalid(format!("{name}: {why}")))?;
        let date = text(arguments, "date").map_or(Some(TODAY), Date::parse);
        let no_date = || {
            Refusal::invalid(format!(
                "{name}: argument `date` is not a date like 2026-09-12"
            ))
        };
        let date = date.ok_or_else(no_date)?;
        let words = format!(
            "What should I wear on {date} in {}? The forecast is attached.",
            place.name
        );
        let uri = format!("weather://forecast/{}/{date}", place.segment());
        let contents = text_contents(
            &uri,
            "application/json",
            Forecast::of(place, date).to_json().to_string(),
        );
        Ok(
            json!({"description": format!("Clothes for {}", place.name), "messages": [
                {"role": "user", "content": {"type": "text", "text": words}},
                {"role": "user", "content": {"type": "resource", "resource": contents}},
            ]}),
        )
    }

    fn read(&self, uri: &str) -> Option<Value> {
        let json = "application/json";
        match uri {
            STATION => return Some(text_contents(uri, json, self.reading().to_string())),
            SUN => return Some(json!({"uri": uri, "mimeType": "image/png", "blob": SUN_PNG})),
            CITIES => {
                let all: Value = PLACES.iter().map(|place| place.name).collect();
                return Some(text_contents(uri, json, all.to_string()));
            }
            _ => {}
        }
        let forecast = match places::segments("weather://forecast/", uri) {
            Some([city, date]) => Forecast::of(Place::named(&city)?, Date::parse(&date)?),
            None => {
                let [city] = places::segments("weather://current/", uri)?;
                Forecast::of(Place::named(&city)?, TODAY)
            }
        };
        Some(text_contents(uri, json, forecast.to_json().to_string()))
    }

    fn complete(&self, _of: &str, argument: &str, typed: &str, _given: &Object) -> Vec<String> {
        match argument {
            "city" => places::starting_with(typed),
            "date" => Date::starting_with(typed),
            _ => Vec::new(),
        }
    }

    fn is_watchable(&self, uri: &str) -> bool {
        uri == STATION
    }

    fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }
}

fn current(arguments: &Object) -> Result<Value, Stop> {
    let place = city(arguments).map_err(Stop::Failed)?;
    let units = text(arguments, "units").unwrap_or("celsius");
    let today = Forecast::of(place, TODAY);
    let temperature = match units {
        "fahrenheit" => today.high * 9 / 5 + 32,
        _ => today.high,
    };
    Ok(structured(json!({
        "city": place.name,
        "country": place.country,
        "observed": format!("{TODAY}T12:00"),
        "conditions": today.sky,
        "temperature": temperature,
        "units": units,
        "wind_kmh": today.wind,
    })))
}

fn forecast(arguments: &Object) -> Result<Value, Stop> {
    let (place, first) = (city(arguments).map_err(Stop::Failed)?, day(arguments));
    let count = arguments
        .get("days")
        .and_then(schema::integer)
        .unwrap_or(1)
        .clamp(1, LONGEST);
    let count = usize::try_from(count).unwrap_or(1);
    let days = std::iter::successors(Some(first), |day| Some(day.next()));
    let days: Vec<Value> = days
        .take(count)
        .map(|day| Forecast::of(place, day).to_json())
        .collect();
    Ok(structured(json!({"days": days})))
}

async fn compare(arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
    let names = arguments
        .get("cities")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    let mut forecasts = Vec::new();
    for (done, name) in names.iter().enumerate() {
        let place = place(name).map_err(Stop::Failed)?;
        turn.step(done, names.len(), &format!("looking at {}", place.name))
            .await;
        forecasts.push(Forecast::of(place, day(arguments)));
    }
    turn.step(names.len(), names.len(), "ranking").await;
    // Pleasant is dry, near 23 degrees and calm, in that order of weight.
    forecasts.sort_by_key(|f| f.rain + 3 * (f.high - 23).abs() + f.wind / 2);
    let best_first: Vec<Value> = forecasts.into_iter().map(Forecast::to_json).collect();
    Ok(structured(json!({"best_first": best_first})))
}

async fn outing(arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
    let (place, date) = (city(arguments).map_err(Stop::Failed)?, day(arguments));
    let message = format!("What would you like to do in {} on {date}?", place.name);
    let form = json!({
        "type": "object",
        "properties": {"activity": {"type": "string", "title": "Activity", "enum": ACTIVITIES}},
        "required": ["activity"],
    });
    let form = match turn.elicit("activity", message, form).await? {
        Choice::Accepted(form) => form,
        Choice::Declined | Choice::Cancelled => {
            return Err(Stop::failed(
                "the user chose no activity; no outing was planned",
            ));
        }
    };
    let activity = text(&form, "activity").unwrap_or_default();
    let forecast = Forecast::of(place, date);
    let suitable = match activity {
        "picnic" => forecast.rain < 30 && forecast.high >= 15,
        "hike" => forecast.rain < 50 && forecast.wind < 35,
        "museum" => true,
        "sailing" => (8..35).contains(&forecast.wind),
        _ => {
            return Err(Stop::failed(format!(
                "no activity {activity:?}; no outing was planned"
            )));
        }
    };
    Ok(structured(json!({
        "activity": activity, "suitable": suitable, "forecast": forecast.to_json(),
    })))
}

async fn describe(arguments: &Object, turn: &Turn) -> Result<Value, Stop> {
    let (place, date) = (city(arguments).map_err(Stop::Failed)?, day(arguments));
    let forecast = Forecast::of(place, date).to_json();
    let system = "You write weather reports of one friendly sentence.";
    let sampled = turn
        .sample(
            "report",
            system,
            format!("Put this forecast into words: {forecast}"),
        )
        .await?;
    let text = format!("{}\n(written by {})", sampled.text, sampled.model);
    Ok(json!({"content": [{"type": "text", "text": text}]}))
}

fn city(arguments: &Object) -> Result<&'static Place, String> {
    place(text(arguments, "city").unwrap_or_default())
}

fn place(city: &str) -> Result<&'static Place, String> {
    Place::named(city).ok_or_else(|| format!("no city {city:?}; known are {}", places::all_names()))
}

/// The `date` argument, which the input schema has checked.
fn day(arguments: &Object) -> Date {
    text(arguments, "date")
        .and_then(Date::parse)
        .unwrap_or(TODAY)
}
