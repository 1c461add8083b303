//! Draining one list of one upstream: every page, within bounds.
//!
//! Guarantees: a hostile list ends: pages, items and bytes are bounded, and a cursor that comes back stops the walk. What was
//! cut short says so. An empty cursor ends the lists of the handshake era, and those alone (PROTOCOL A1). Deliberately absent: any judgement of a single definition, which is the catalog's.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{UpstreamError, holdings::Holder};
use crate::{
    catalog::{Listing, rules::CatalogBounds},
    json::{Json, Kind, Node},
    memory,
    metrics::{Bound, reached},
    protocol::{Era, methods::ListKind},
};

/// All pages of a list of a server of this era, as far as `holder` has room for them. `fetch` gets one page's result, from the
/// start or from a cursor.
///
/// # Errors
/// Whatever `fetch` fails with, and [`UpstreamError::Protocol`] for a page without its array, or with a cursor that is no string.
pub(super) async fn drain<F>(
    kind: ListKind,
    era: Era,
    bounds: &CatalogBounds,
    holder: &Holder,
    mut fetch: impl FnMut(Option<String>) -> F,
) -> Result<Listing, UpstreamError>
where
    F: Future<Output = Result<Json, UpstreamError>>,
{
    let mut items: Vec<Json> = Vec::new();
    let mut reading = holder.reading(kind);
    let mut bytes = 0;
    let mut seen: Vec<String> = Vec::new();
    let mut ttl = Hint::Unseen;
    let mut public = true;
    let (mut truncated, mut endless) = (false, false);
    let mut cursor = None;
    loop {
        let page = fetch(cursor.take()).await?;
        let root = page.root();
        let array = root
            .member(kind.member())
            .filter(|array| array.kind() == Kind::Array)
            .ok_or_else(|| {
                UpstreamError::Protocol(format!("`{}` without its array", kind.method()))
            })?;
        let mut told = Vec::new();
        for item in array.elements() {
            bytes += item.raw().len();
            let count = items.len() + told.len();
            if count == bounds.items || bytes > bounds.total_bytes {
                reached(if count == bounds.items {
                    Bound::CatalogItems
                } else {
                    Bound::CatalogTotal
                });
                truncated = true;
                break;
            }
            told.push(page.slice(item));
        }
        let apart = let_go_of_page(&page, &mut told);
        let count = told.len();
        let held = told.into_iter().map_while(|item| reading.take(item, apart));
        let before = items.len();
        items.extend(held);
        if items.len() - before < count {
            reached(Bound::CatalogTotal);
            truncated = true;
        }
        ttl = ttl.and(root.member("ttlMs"));
        public &= root
            .member("cacheScope")
            .and_then(Node::as_str)
            .is_some_and(|scope| scope == "public");
        let next = root.member("nextCursor");
        let Some(next) = next.filter(|next| next.kind() != Kind::Null) else {
            break;
        };
        let next = next.as_str().ok_or_else(|| {
            UpstreamError::Protocol(format!(
                "`{}` with a cursor that is no string",
                kind.method()
            ))
        })?;
        // An empty cursor is a cursor in the era that says so (PROTOCOL A1). Before, many servers ended their lists with it, and
        // answered it with their first page once more, or with an error that would have cost the whole list.
        if era == Era::Legacy && next.is_empty() {
            break;
        }
        let over = if next.len() > bounds.cursor_bytes {
            Some(Bound::UpstreamCursor)
        } else {
            (seen.len() + 1 >= bounds.pages).then_some(Bound::CatalogPages)
        };
        over.into_iter().for_each(reached);
        endless = over.is_some() || seen.iter().any(|old| **old == *next);
        truncated |= endless;
        if truncated {
            break;
        }
        seen.push(next.clone().into_owned());
        cursor = Some(next.into_owned());
    }
    reading.end();
    Ok(Listing {
        items: Arc::from(items),
        ttl: ttl.told(),
        public,
        truncated,
        endless,
    })
}

/// Items share their page's bytes; where they are less than half of it they are copied out, so that a long page is not
/// kept alive for a few short items. So they are where the page counts for the budget of memory, which is for messages on
/// their way: catalogs are kept, and have bounds of their own. What is around a page is less than it. Whether they are copies.
fn let_go_of_page(page: &Json, items: &mut [Json]) -> bool {
    let used: usize = items.iter().map(Json::len).sum();
    let apart = page.len() > memory::SMALL / 2 || used * 2 < page.len();
    if apart {
        for item in items {
            // Each is one value of a valid text.
            *item = Json::composed(Bytes::copy_from_slice(item.bytes()));
        }
    }
    apart
}

/// The smallest time to live over the pages; a page without one counts as zero once any page has one (PROTOCOL D5).
#[derive(Clone, Copy)]
enum Hint {
    Unseen,
    Absent,
    Millis(u64),
}

impl Hint {
    fn and(self, told: Option<Node<'_>>) -> Self {
        let told = told.map(|node| {
            node.as_i64()
                .and_then(|millis| u64::try_from(millis).ok())
                .unwrap_or(0)
        });
        match (self, told) {
            (Self::Unseen | Self::Absent, None) => Self::Absent,
            (Self::Unseen, Some(millis)) => Self::Millis(millis),
            (Self::Absent, Some(_)) | (Self::Millis(_), None) => Self::Millis(0),
            (Self::Millis(least), Some(millis)) => Self::Millis(least.min(millis)),
        }
    }

    const fn told(self) -> Option<Duration> {
        match self {
            Self::Unseen | Self::Absent => None,
            Self::Millis(millis) => Some(Duration::from_millis(millis)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::Limits, metrics::seen, upstream::holdings::Holdings};

    async fn drained(
        bounds: CatalogBounds,
        pages: impl FnMut(Option<&str>) -> String,
    ) -> Result<Listing, UpstreamError> {
        drained_in(Era::Modern, bounds, pages).await
    }

    async fn drained_in(
        era: Era,
        bounds: CatalogBounds,
        mut pages: impl FnMut(Option<&str>) -> String,
    ) -> Result<Listing, UpstreamError> {
        let holder = Holdings::new(bounds.total_bytes).holder();
        drain(ListKind::Tools, era, &bounds, &holder, |cursor| {
            let page = pages(cursor.as_deref());
            std::future::ready(Ok(Json::parse(page.into(), &Limits::LIST).unwrap()))
        })
        .await
    }

    #[tokio::test]
    async fn every_page_is_read_and_an_empty_cursor_is_a_cursor() {
        let mut asked = Vec::new();
        let listing = drained(CatalogBounds::default(), |cursor| {
            asked.push(cursor.map(str::to_owned));
            match cursor {
                None => r#"{"tools":[{"n":1},{"n":2}],"nextCursor":"","ttlMs":5000,"cacheScope":"public"}"#,
                Some("") => r#"{"tools":[],"nextCursor":"x","ttlMs":3000,"cacheScope":"public"}"#,
                Some(_) => r#"{"tools":[{"n":3}],"ttlMs":9000,"cacheScope":"public"}"#,
            }
            .to_owned()
        })
        .await
        .unwrap();
        assert_eq!(asked, [None, Some(String::new()), Some("x".into())]);
        let items: Vec<_> = listing.items.iter().map(Json::as_str).collect();
        assert_eq!(items, [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
        assert_eq!(listing.ttl, Some(Duration::from_secs(3)));
        assert!(listing.public && !listing.truncated);
    }

    #[tokio::test]
    async fn an_empty_cursor_ends_a_list_of_the_handshake_era() {
        let mut asked = Vec::new();
        let listing = drained_in(Era::Legacy, CatalogBounds::default(), |cursor| {
            asked.push(cursor.map(str::to_owned));
            let next = if cursor.is_none() { "x" } else { "" };
            format!(r#"{{"tools":[{{}}],"nextCursor":"{next}"}}"#)
        })
        .await
        .unwrap();
        assert_eq!(asked, [None, Some("x".into())]);
        assert_eq!(listing.items.len(), 2);
        assert!(!listing.truncated && !listing.endless);
    }

    #[tokio::test]
    async fn a_cursor_that_comes_back_ends_the_list() {
        let mut count = 0;
        let listing = drained(CatalogBounds::default(), |cursor| {
            count += 1;
            let next = if cursor == Some("a") { "b" } else { "a" };
            format!(r#"{{"tools":[{{"n":{count}}}],"nextCursor":"{next}"}}"#)
        })
        .await
        .unwrap();
        assert_eq!((listing.items.len(), listing.truncated), (3, true));
        assert!(listing.endless);
        assert_eq!((listing.ttl, listing.public), (None, false));
    }

    #[tokio::test]
    async fn pages_items_and_bytes_are_bounded_and_the_cut_is_told() {
        let endless = |cursor: Option<&str>| {
            let n: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
            format!(r#"{{"tools":["aaaa","bbbb"],"nextCursor":"{}"}}"#, n + 1)
        };
        let bounds = CatalogBounds::default();
        for (bounds, want, bound) in [
            (CatalogBounds { pages: 3, ..bounds }, 6, Bound::CatalogPages),
            (CatalogBounds { items: 3, ..bounds }, 3, Bound::CatalogItems),
            (
                CatalogBounds {
                    total_bytes: 30,
                    ..bounds
                },
                5,
                Bound::CatalogTotal,
            ),
        ] {
            seen::take();
            let listing = drained(bounds, endless).await.unwrap();
            assert_eq!((listing.items.len(), listing.truncated), (want, true));
            // Of more than may be kept it is known what it is.
            assert_eq!(listing.endless, bound == Bound::CatalogPages, "{bound:?}");
            assert_eq!(seen::take(), [bound]);
        }
    }

    /// SECURITY 6: items, bytes and pages of a list.
    #[tokio::test]
    async fn a_list_may_have_its_bounds_and_no_more() {
        // Three pages of two items of six bytes.
        let list = |cursor: Option<&str>| match cursor.map_or(0, |cursor| cursor.len()) {
            2 => r#"{"tools":["aaaa","bbbb"]}"#.to_owned(),
            n => format!(
                r#"{{"tools":["aaaa","bbbb"],"nextCursor":"{}"}}"#,
                "c".repeat(n + 1)
            ),
        };
        let bounds = CatalogBounds::default();
        let pages = |pages| CatalogBounds { pages, ..bounds };
        let items = |items| CatalogBounds { items, ..bounds };
        let bytes = |total_bytes| CatalogBounds {
            total_bytes,
            ..bounds
        };
        for (bounds, want, noted) in [
            (pages(4), 6, None),
            (pages(3), 6, None),
            (pages(2), 4, Some(Bound::CatalogPages)),
            (items(7), 6, None),
            (items(6), 6, None),
            (items(5), 5, Some(Bound::CatalogItems)),
            (bytes(37), 6, None),
            (bytes(36), 6, None),
            (bytes(35), 5, Some(Bound::CatalogTotal)),
        ] {
            seen::take();
            let listing = drained(bounds, list).await.unwrap();
            assert_eq!(listing.items.len(), want, "{bounds:?}");
            assert_eq!(listing.truncated, noted.is_some(), "{bounds:?}");
            assert_eq!(seen::take(), Vec::from_iter(noted), "{bounds:?}");
        }
    }

    /// SECURITY 6, REL-3: the bytes of all lists that are held.
    #[tokio::test]
    async fn a_list_has_what_other_lists_leave_and_the_cut_is_told() {
        for (most, want, noted) in [
            (47, 3, Some(Bound::CatalogTotal)),
            (48, 4, None),
            (49, 4, None),
        ] {
            let bounds = CatalogBounds {
                total_bytes: most,
                ..CatalogBounds::default()
            };
            let holder = Holdings::new(most).holder();
            let read = async |kind: ListKind, mark: char| {
                let pages = |cursor: Option<String>| {
                    let first = cursor.is_none();
                    let items = if first { [1, 2] } else { [3, 4] };
                    let items = items.map(|n| format!(r#""{mark}{n}xx""#)).join(",");
                    let next = if first { r#","nextCursor":"x""# } else { "" };
                    let page = format!(r#"{{"{}":[{items}]{next}}}"#, kind.member());
                    std::future::ready(Ok(Json::parse(page.into(), &Limits::LIST).unwrap()))
                };
                drain(kind, Era::Modern, &bounds, &holder, pages)
                    .await
                    .unwrap()
            };
            seen::take();
            let first = read(ListKind::Prompts, 'p').await;
            assert_eq!((first.items.len(), first.truncated), (4, false));
            let second = read(ListKind::Tools, 't').await;
            assert_eq!(second.items.len(), want, "{most}");
            assert_eq!(second.truncated, noted.is_some());
            assert!(!second.endless);
            assert_eq!(seen::take(), Vec::from_iter(noted));
        }
    }

    #[tokio::test]
    async fn a_cursor_may_have_its_bound_and_no_byte_more() {
        let bounds = CatalogBounds {
            cursor_bytes: 100,
            ..CatalogBounds::default()
        };
        for (length, pages, noted) in [
            (99, 2, vec![]),
            (100, 2, vec![]),
            (101, 1, vec![Bound::UpstreamCursor]),
        ] {
            seen::take();
            let listing = drained(bounds, |cursor| match cursor {
                None => format!(
                    r#"{{"tools":[{{}}],"nextCursor":"{}"}}"#,
                    "c".repeat(length)
                ),
                Some(_) => r#"{"tools":[{}]}"#.to_owned(),
            });
            let listing = listing.await.unwrap();
            assert_eq!(
                (listing.items.len(), listing.truncated),
                (pages, pages == 1)
            );
            assert_eq!(seen::take(), noted, "{length}");
        }
    }

    #[tokio::test]
    async fn a_few_short_items_do_not_keep_a_long_page_alive() {
        let long = "x".repeat(1000);
        let page = format!(r#"{{"other":"{long}","tools":[{{"n":1}}]}}"#);
        let buffer = Bytes::from(page);
        let whole = buffer.as_ptr_range();
        let holder = Holdings::new(usize::MAX).holder();
        let bounds = CatalogBounds::default();
        let listing = drain(ListKind::Tools, Era::Modern, &bounds, &holder, |_| {
            std::future::ready(Ok(Json::parse(buffer.clone(), &Limits::LIST).unwrap()))
        })
        .await
        .unwrap();
        assert_eq!(listing.items[0].as_str(), r#"{"n":1}"#);
        assert!(!whole.contains(&listing.items[0].bytes().as_ptr()));
    }

    #[tokio::test]
    async fn a_page_without_its_array_is_a_broken_protocol() {
        for page in [r#"{"tools":{}}"#, "{}", r#"{"tools":null}"#] {
            let drained = drained(CatalogBounds::default(), |_| page.to_owned()).await;
            assert!(matches!(drained, Err(UpstreamError::Protocol(_))), "{page}");
        }
    }

    /// SECURITY EGR-11
    #[tokio::test]
    async fn a_cursor_that_is_no_string_is_a_broken_protocol_and_no_end() {
        for (next, ends) in [
            ("null", true),
            ("2", false),
            ("{}", false),
            ("false", false),
        ] {
            let page = |_: Option<&str>| format!(r#"{{"tools":[{{}}],"nextCursor":{next}}}"#);
            let drained = drained(CatalogBounds::default(), page).await;
            match drained {
                Ok(listing) => assert!(ends && !listing.truncated, "{next}"),
                Err(error) => assert!(
                    !ends && matches!(error, UpstreamError::Protocol(_)),
                    "{next}"
                ),
            }
        }
    }

    /// The budget of memory is for messages on their way.
    #[tokio::test]
    async fn a_catalog_that_is_kept_does_not_count_as_a_message() {
        let most = memory::SMALL / 2 - r#"{"tools":[{"name":""}]}"#.len();
        for (length, shared) in [(most, true), (most + 1, false), (4 * most, false)] {
            let text = format!(r#"{{"tools":[{{"name":"{}"}}]}}"#, "x".repeat(length));
            let page = Json::parse(Bytes::from(text), &Limits::UPSTREAM).unwrap();
            let whole = page.bytes().as_ptr_range();
            let bounds = CatalogBounds::default();
            let holder = Holdings::new(usize::MAX).holder();
            let listing = drain(ListKind::Tools, Era::Modern, &bounds, &holder, |_| {
                std::future::ready(Ok(page.clone()))
            })
            .await
            .unwrap();
            let item = &listing.items[0];
            assert_eq!(whole.contains(&item.bytes().as_ptr()), shared, "{length}");
            assert_eq!(item.len(), length + 11);
        }
    }
}
