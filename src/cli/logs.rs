//! Logs on stderr: for people on a terminal, JSON lines otherwise.
//!
//! Guarantees: one line for each event, whatever its fields hold; what a gateway that runs says of itself is one, too, whatever the
//! filter; a JSON line that is written while a call is worked on names the
//! trace and the span of that call, where it has one, so that what a person reads in one place is found in the other; no line
//! holds a credential that stands in the configuration, whoever wrote it into one (SECURITY AUD-8).

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
};

use anstream::adapter::strip_str;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    filter::ParseError,
    fmt::{FmtContext, FormatEvent, FormatFields, format, format::Writer, layer},
    prelude::*,
    registry::LookupSpan,
};

use super::out;
use crate::{app, config::Plan, sanitize::OwnCredentials, spans};

/// What suits a service; of the telemetry's own machinery only what is wrong.
const SERVICE: &str = "info,opentelemetry=warn";

/// Of what is told whatever the filter is: nobody asks for it again.
const SAID: &str = "usher::said";

/// Whether lines are read by programs.
static FOR_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// What no line holds: what is read before the configuration is cannot be known yet.
static WITHHELD: LazyLock<OwnCredentials> = LazyLock::new(OwnCredentials::new);

/// From now on no line holds a credential of this plan.
pub(super) fn withhold(plan: &Plan) {
    WITHHELD.hold(app::credentials(plan));
}

/// Something that a gateway says of itself, which may be painted: an event for programs, else a note.
pub(super) fn say(text: &str) {
    if FOR_PROGRAMS.load(Ordering::Relaxed) {
        tracing::info!(target: SAID, "{}", strip_str(text));
    } else {
        out::note(text);
    }
}

/// Starts logging by `filter`, or by what suits a service; `quiet` is for commands that say everything themselves.
///
/// # Errors
/// When the filter cannot be read.
pub(super) fn start(filter: Option<&str>, quiet: bool) -> Result<(), ParseError> {
    let default = if quiet { "error" } else { SERVICE };
    let filter = EnvFilter::builder().parse(filter.unwrap_or(default))?;
    let filter = filter.add_directive(format!("{SAID}=info").parse()?);
    FOR_PROGRAMS.store(!quiet && !out::notes_to_terminal(), Ordering::Relaxed);
    let registry = tracing_subscriber::registry().with(filter);
    let started = if out::notes_to_terminal() {
        registry
            .with(layer().with_writer(stderr).with_target(false))
            .try_init()
    } else {
        let lines = layer()
            .json()
            .event_format(Traced(format().json().flatten_event(true)));
        registry.with(lines.with_writer(stderr)).try_init()
    };
    // A second start in one process is a test's: the first one's logs go on.
    drop(started);
    Ok(())
}

fn stderr() -> Without<io::Stderr> {
    Without(io::stderr())
}

/// Lines without what is withheld; each comes in one piece.
struct Without<W>(W);

impl<W: Write> Write for Without<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match WITHHELD.without(&String::from_utf8_lossy(line)) {
            Cow::Borrowed(_) => self.0.write_all(line)?,
            Cow::Owned(without) => self.0.write_all(without.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// JSON lines, with the span of the call that is worked on.
struct Traced<F>(F);

impl<S, N, F> FormatEvent<S, N> for Traced<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some((trace, span)) = spans::current() else {
            return self.0.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(open) => writeln!(
                writer,
                r#"{open},"trace_id":"{trace:032x}","span_id":"{span:016x}"}}"#
            ),
            None => writer.write_str(&line),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_types,
    reason = "single members of lines are looked at"
)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use serde_json::Value;

    use super::*;
    use crate::{
        logged::Lines,
        spans::{About, Spans},
    };

    /// SECURITY AUD-8
    #[test]
    fn no_line_holds_a_credential_of_the_configuration_in_whatever_field_it_stands() {
        const PLANTED: &str = "planted-in-a-line-0a1b2c";
        WITHHELD.hold([PLANTED]);
        for json in [true, false] {
            let lines = Lines::new();
            let writer = lines.clone();
            let make = move || Without(writer.clone());
            let layer = layer().with_writer(make);
            let registry = tracing_subscriber::registry();
            let say = || {
                tracing::warn!(error = PLANTED, why = %format!("it said {PLANTED}"), "a line of {PLANTED}");
                tracing::warn!("another");
            };
            if json {
                tracing::subscriber::with_default(registry.with(layer.json()), say);
            } else {
                tracing::subscriber::with_default(registry.with(layer), say);
            }
            let text = lines.text();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(
                text.contains("another") && !text.contains(PLANTED),
                "{text}"
            );
            assert_eq!(
                text.matches("[redacted:own_credential]").count(),
                3,
                "{text}"
            );
        }
    }

    #[test]
    fn a_service_says_nothing_of_the_machinery_of_telemetry_but_what_is_wrong() {
        let lines = Lines::new();
        let writer = lines.clone();
        let filter = EnvFilter::builder().parse(SERVICE).unwrap();
        let layer = layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry().with(filter).with(layer);
        tracing::subscriber::with_default(registry, || {
            tracing::info!(target: "opentelemetry", "a provider is set");
            tracing::info!(target: "opentelemetry_sdk", "a reader is started");
            tracing::warn!(target: "opentelemetry-otlp", "nobody takes spans");
            tracing::info!("ready");
        });
        let text = lines.text();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.contains("nobody takes spans") && text.contains("ready"),
            "{text}"
        );
    }

    #[test]
    fn a_line_is_one_line_and_names_the_span_that_it_was_written_in() {
        let lines = Lines::new();
        let writer = lines.clone();
        let json = layer()
            .json()
            .event_format(Traced(format().json().flatten_event(true)))
            .with_writer(move || writer.clone());
        let spans = Spans::made_by(SdkTracerProvider::builder().build().tracer("t"));
        let about = About {
            method: "tools/call",
            ..About::default()
        };
        let span = spans.served(&about, None).unwrap();
        let told = span.told();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(json), || {
            tracing::warn!(error = "one\ntwo", "before");
            let within = span.lead().within();
            tracing::warn!(upstream = "x", "in it");
            drop(within);
            tracing::warn!("after");
        });
        let text = lines.text();
        let read: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read.len(), 3, "{text}");
        let trace = |line: &Value| {
            let of = |key: &str| line[key].as_str().map(str::to_owned);
            of("trace_id").zip(of("span_id"))
        };
        let own = (
            format!("{:032x}", told.trace),
            format!("{:016x}", told.span),
        );
        let all: Vec<_> = read.iter().map(trace).collect();
        assert_eq!(all, [None, Some(own), None]);
        assert_eq!(read[1]["upstream"], "x");
    }
}
