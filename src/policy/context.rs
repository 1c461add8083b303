//! The context of a request: of what is known, what the policies of a slice look at.

use std::time::{SystemTime, UNIX_EPOCH};

use cedar_policy::{Context, Entity, RestrictedExpression};

use super::{
    Ask,
    laid::Laid,
    mention::Mentions,
    represent::{self, Unrepresentable},
    rule::uid,
    shape::Shapes,
};
use crate::json::Json;

/// The id of the entity that holds arguments as text.
const TEXT: &str = "arguments";

/// The context, and the entity that it may refer to.
pub(super) fn context(
    ask: &Ask<'_>,
    item: &Laid,
    mentions: &Mentions,
    more_scopes: &[std::sync::Arc<str>],
) -> Result<(Context, Option<Entity>), Unrepresentable> {
    let looked = mentions.fields;
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let mut pairs = Vec::with_capacity(4);
    let mut tags = None;
    if let Some(shapes) = item.shapes_if_any(ask.action, mentions) {
        let arguments = ask.arguments.map(Json::root);
        let record = represent::arguments(arguments, &mentions.args, shapes)?;
        pairs.push(("args".to_owned(), record));
        if looked.text {
            let uid = uid("Text", TEXT);
            let mut found = Vec::new();
            for tag in &mentions.tags {
                let value = represent::tag(arguments, tag)?;
                found.extend(value.map(|value| (tag.to_string(), text(&value))));
            }
            pairs.push((
                "text".to_owned(),
                RestrictedExpression::new_entity_uid(uid.clone()),
            ));
            tags = Some(Entity::new_with_tags(uid, [], [], found).map_err(|_| odd())?);
        }
    }
    if looked.scopes {
        let scopes = ask.who.scopes.iter().chain(more_scopes);
        let scopes = RestrictedExpression::new_set(scopes.map(|scope| text(scope)));
        pairs.push(("scopes".to_owned(), scopes));
    }
    if let Some(client) = ask.who.client.as_ref().filter(|_| looked.client) {
        pairs.push(("client".to_owned(), text(client)));
    }
    let around = &ask.circumstances;
    if looked.revision {
        pairs.push(("revision".to_owned(), text(around.revision.as_str())));
    }
    if let Some(address) = around.address.filter(|_| looked.address) {
        let address = RestrictedExpression::new_ip(address.to_canonical().to_string());
        pairs.push(("address".to_owned(), address));
    }
    if looked.time {
        let time = RestrictedExpression::new_datetime(datetime(around.now));
        pairs.push(("time".to_owned(), time));
    }
    if let Some(toolset) = around.toolset.filter(|_| looked.toolset) {
        pairs.push(("toolset".to_owned(), text(toolset)));
    }
    let context = Context::from_pairs(pairs).map_err(|_| odd())?;
    Ok((context, tags))
}

/// Keys are distinct and values are values, so this is not seen; it denies all the same.
fn odd() -> Unrepresentable {
    Unrepresentable {
        path: "context".into(),
        wanted: None,
    }
}

impl Laid {
    fn shapes_if_any(&self, action: super::Action, mentions: &Mentions) -> Option<&Shapes> {
        let looked = mentions.fields.text || !mentions.args.below.is_empty();
        if looked { self.shapes(action) } else { None }
    }
}

/// A moment as Cedar spells it, to the millisecond. Moments before 1970 and after 9999 count as the first and last between.
fn datetime(at: SystemTime) -> String {
    const LAST: u64 = 253_402_300_799;
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().min(LAST);
    let (days, clock) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years; years begin in March, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}.{:03}Z",
        clock / 3_600,
        clock / 60 % 60,
        clock % 60,
        since.subsec_millis(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_spelled_as_their_date() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_795_262_400_000, "2026-11-21T12:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(datetime(at), text);
        }
    }
}
