//! Which records are asked for.

use std::time::{Duration, SystemTime};

use clap::{Args as ClapArgs, builder::PossibleValuesParser};

use crate::{
    audit::{EVENTS, OUTCOMES, query::Filter, stamp, stamped},
    config,
};

/// What a record has to be like; what is not given does not matter.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(super) struct Asked {
    /// Not before: `2026-11-21T12:00:00Z`, `2026-11-21`, or a time ago such as `90m`, `1h`, `7d`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Before: as --since
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
    /// Who called or did it, or whose key it was
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// The upstream's key
    #[arg(long, value_name = "KEY")]
    upstream: Option<String>,
    /// The tool, prompt or resource, by the name that clients or its server use; what else something was done to
    #[arg(long, value_name = "NAME", visible_alias = "name")]
    tool: Option<String>,
    /// The method, such as `tools/call`
    #[arg(long)]
    method: Option<String>,
    /// How a call ended, or what came of something else: as the column RESULT has it
    #[arg(long, value_parser = PossibleValuesParser::new(OUTCOMES))]
    outcome: Option<String>,
    /// What was decided
    #[arg(long, value_parser = ["permit", "deny"])]
    decision: Option<String>,
    /// The reason of a refusal, such as `policy_denied`, or what a credential did not stand up to
    #[arg(long)]
    reason: Option<String>,
    /// The class or the rule of something that was found in the content
    #[arg(long, value_name = "CLASS")]
    finding: Option<String>,
    /// The kind of event
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(EVENTS))]
    event: Option<String>,
    /// The reference that a client was told, of an error or of an approval
    #[arg(long = "ref", value_name = "REF")]
    call: Option<String>,
}

impl Asked {
    /// As the log is asked.
    pub(super) fn filter(&self) -> Filter {
        let text = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.0.clone());
        Filter {
            since: text(&self.since),
            until: text(&self.until),
            principal: self.principal.clone(),
            upstream: self.upstream.clone(),
            name: self.tool.clone(),
            method: self.method.clone(),
            outcome: self.outcome.clone(),
            decision: self.decision.clone(),
            reason: self.reason.clone(),
            finding: self.finding.clone(),
            event: self.event.clone(),
            call: self.call.clone(),
        }
    }

    /// Whether a kind of event was asked for: then also those that only tell of the log are shown.
    pub(super) const fn is_of_a_kind(&self) -> bool {
        self.event.is_some()
    }
}

/// A time as records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Moment(String);

fn moment(text: &str) -> Result<Moment, String> {
    moment_at(text, SystemTime::now())
}

fn moment_at(text: &str, now: SystemTime) -> Result<Moment, String> {
    if let Some(time) = stamped(text) {
        return Ok(Moment(time));
    }
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        return Ok(Moment(format!("{day}T00:00:00.000000000Z")));
    }
    ago(text)
        .and_then(|ago| now.checked_sub(ago))
        .map(|time| Moment(stamp(time)))
        .ok_or_else(|| {
            "a time such as `2026-11-21T12:00:00Z`, a day such as `2026-11-21`, or a time ago such as `90m`, `1h` or `7d`"
                .to_owned()
        })
}

fn ago(text: &str) -> Option<Duration> {
    config::time(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is shown as a result can be asked for, and a slip is told from what is not there.
    #[test]
    fn results_are_asked_for_by_the_words_that_there_are() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            asked: Asked,
        }
        let asked = |word: &str| {
            let line = <Line as clap::Parser>::try_parse_from(["query", "--outcome", word]);
            line.map(|line| line.asked.filter().outcome)
        };
        for word in ["ok", "refused", "began", "in_force", "unfit", "flag"] {
            assert_eq!(asked(word).unwrap().as_deref(), Some(word));
        }
        let refused = asked("begun").unwrap_err().to_string();
        for word in OUTCOMES {
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }

    #[test]
    fn times_are_told_in_full_by_day_or_ago() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (text, time) in [
            ("2026-11-21T12:00:00Z", "2026-11-21T12:00:00.000000000Z"),
            (
                "2026-11-21T14:00:00.5+02:00",
                "2026-11-21T12:00:00.500000000Z",
            ),
            ("2026-11-21", "2026-11-21T00:00:00.000000000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-30T22:00:00.999999999Z"),
            ("1h", "2027-01-15T07:00:00.000000000Z"),
            ("7d", "2027-01-08T08:00:00.000000000Z"),
        ] {
            assert_eq!(moment_at(text, now), Ok(Moment(time.to_owned())), "{text}");
        }
        for text in ["yesterday", "", "1", "2026-13-01"] {
            assert!(moment_at(text, now).is_err(), "{text}");
        }
    }
}
