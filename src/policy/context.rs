//! What a request brings, as far as policies look at it: the context.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    net::IpAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use cedar_policy::{Context, Entity, RestrictedExpression};

use super::{
    Ask,
    laid::Laid,
    mention::{Fields, Mentions},
    represent::{self, Held, Unrepresentable},
    rule::uid,
    shape::Shapes,
};
use crate::json::Json;

/// The id of the entity that holds arguments as text.
const TEXT: &str = "arguments";

/// What some policies look at of one request. What they do not look at may be missing, as if it were not there.
#[derive(Debug)]
pub(super) struct Given<'a> {
    looked: Fields,
    /// `context.args`, a record; `None` where there is none.
    pub(super) args: Option<Held<'a>>,
    /// `context.text`: each tag that is looked at, and its value if it has one.
    pub(super) tags: Option<Vec<(&'a str, Option<String>)>>,
    pub(super) scopes: Cow<'a, BTreeSet<Arc<str>>>,
    pub(super) client: Option<&'a str>,
    pub(super) revision: &'static str,
    pub(super) address: Option<IpAddr>,
    pub(super) toolset: Option<&'a str>,
    now: SystemTime,
}

impl<'a> Given<'a> {
    /// What a request brings, with these scopes in addition.
    ///
    /// # Errors
    /// [`Unrepresentable`], if policies look at an argument that cannot be represented.
    pub(super) fn of(
        ask: &Ask<'a>,
        item: &Laid,
        mentions: &'a Mentions,
        more_scopes: &[Arc<str>],
    ) -> Result<Self, Unrepresentable> {
        let looked = mentions.fields;
        let (mut args, mut tags) = (None, None);
        if let Some(shapes) = item.shapes_if_any(ask.action, mentions) {
            let arguments = ask.arguments.map(Json::root);
            args = Some(represent::arguments(arguments, &mentions.args, shapes)?);
            if looked.text {
                let found = mentions
                    .tags
                    .iter()
                    .map(|tag| Ok((&**tag, represent::tag(arguments, tag)?)));
                tags = Some(found.collect::<Result<Vec<_>, _>>()?);
            }
        }
        let mut scopes = Cow::Borrowed(&ask.who.scopes);
        if !more_scopes.is_empty() {
            scopes.to_mut().extend(more_scopes.iter().cloned());
        }
        let around = &ask.circumstances;
        Ok(Self {
            looked,
            args,
            tags,
            scopes,
            client: ask.who.client.as_deref(),
            revision: around.revision.as_str(),
            address: around.address,
            toolset: around.toolset,
            now: around.now,
        })
    }

    /// The same for Cedar, and the entity that it may refer to.
    /// `None` if Cedar does not take it, which denies: keys are distinct and values are values, so this is not seen.
    pub(super) fn cedar(&self) -> Option<(Context, Option<Entity>)> {
        let looked = self.looked;
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let mut pairs = Vec::with_capacity(4);
        let mut holder = None;
        if let Some(args) = &self.args {
            pairs.push(("args", args.cedar().ok()?));
        }
        if let Some(tags) = &self.tags {
            let uid = uid("Text", TEXT);
            let found = tags
                .iter()
                .filter_map(|(tag, value)| Some(((*tag).to_owned(), text(value.as_ref()?))));
            pairs.push(("text", RestrictedExpression::new_entity_uid(uid.clone())));
            holder = Some(Entity::new_with_tags(uid, [], [], found).ok()?);
        }
        if looked.scopes {
            let scopes = self.scopes.iter().map(|scope| text(scope));
            pairs.push(("scopes", RestrictedExpression::new_set(scopes)));
        }
        if let Some(client) = self.client.filter(|_| looked.client) {
            pairs.push(("client", text(client)));
        }
        if looked.revision {
            pairs.push(("revision", text(self.revision)));
        }
        if let Some(address) = self.address.filter(|_| looked.address) {
            let address = RestrictedExpression::new_ip(address.to_canonical().to_string());
            pairs.push(("address", address));
        }
        if looked.time {
            let time = RestrictedExpression::new_datetime(datetime(self.now));
            pairs.push(("time", time));
        }
        if let Some(toolset) = self.toolset.filter(|_| looked.toolset) {
            pairs.push(("toolset", text(toolset)));
        }
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        let context = Context::from_pairs(pairs).ok()?;
        Some((context, holder))
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
