//! The four pairings of eras, and the macro that runs one behaviour on all of them.

use super::{Client, Gateway, GatewayBuilder, Upstream};

pub(crate) use usher::protocol::{Era, Revision};

/// What the client speaks, and what the upstream speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairing {
    pub(crate) client: Revision,
    pub(crate) upstream: Revision,
}

impl Pairing {
    pub(crate) const LEGACY_LEGACY: Self = Self::of(Revision::V2025_11_25, Revision::V2025_11_25);
    pub(crate) const LEGACY_MODERN: Self = Self::of(Revision::V2025_11_25, Revision::V2026_07_28);
    pub(crate) const MODERN_LEGACY: Self = Self::of(Revision::V2026_07_28, Revision::V2025_11_25);
    pub(crate) const MODERN_MODERN: Self = Self::of(Revision::V2026_07_28, Revision::V2026_07_28);

    pub(crate) const fn of(client: Revision, upstream: Revision) -> Self {
        Self { client, upstream }
    }

    /// An upstream of this pairing, over HTTP.
    pub(crate) fn upstream(self) -> Upstream {
        Upstream::http(self.upstream)
    }

    /// A client of this pairing.
    pub(crate) async fn client(self, gateway: &Gateway) -> Client {
        gateway.client(self.client).await
    }

    /// One upstream called `notes`, and a client.
    pub(crate) async fn alone(self, notes: &Upstream) -> (Gateway, Client) {
        let gateway = GatewayBuilder::default()
            .upstream("notes", notes)
            .start()
            .await;
        let client = self.client(&gateway).await;
        (gateway, client)
    }

    pub(crate) fn client_is_modern(self) -> bool {
        self.client.era() == Era::Modern
    }

    pub(crate) fn upstream_is_modern(self) -> bool {
        self.upstream.era() == Era::Modern
    }
}

/// Runs a behaviour on all four pairings; `only [..] because "..."` leaves some out and must say why.
macro_rules! pairings {
    ($(#[$doc:meta])* async fn $name:ident($pair:ident: Pairing) $body:block) => {
        pairings! { @each $(#[$doc])* $name $pair $body
            legacy_client_legacy_server = LEGACY_LEGACY,
            legacy_client_modern_server = LEGACY_MODERN,
            modern_client_legacy_server = MODERN_LEGACY,
            modern_client_modern_server = MODERN_MODERN,
        }
    };
    (only [$($case:ident = $which:ident),+ $(,)?] because $reason:literal;
     $(#[$doc:meta])* async fn $name:ident($pair:ident: Pairing) $body:block) => {
        const _: () = assert!(!$reason.is_empty(), "an opt-out says why");
        pairings! { @each $(#[$doc])* $name $pair $body $($case = $which,)+ }
    };
    (@each $(#[$doc:meta])* $name:ident $pair:ident $body:block $($case:ident = $which:ident,)+) => {
        $(#[$doc])*
        mod $name {
            use super::*;

            async fn behaviour($pair: Pairing) $body

            $(
                #[tokio::test]
                async fn $case() {
                    behaviour(Pairing::$which).await;
                }
            )+
        }
    };
}
