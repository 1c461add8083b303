//! Where and how to listen: plain validated values, made from configuration.

use std::{net::SocketAddr, time::Duration};

use ipnet::IpNet;
use secrecy::SecretString;

/// One listener.
#[derive(Debug, Clone)]
pub struct ListenSpec {
    /// Where. Default `127.0.0.1:8808`. Anything but loopback needs TLS (or the statement that a proxy ends it), `hosts` and
    /// an authentication method.
    pub address: SocketAddr,
    /// Host names accepted in `Host` and as the host of `Origin`, beside the loopback names on a loopback bind. Lower case, no port.
    pub hosts: Vec<String>,
    /// Proxies in front whose `X-Forwarded-For` says whence a request comes (SECURITY HTTP-12). Default: none, then the header is
    /// dropped unread.
    pub trusted_proxies: Vec<IpNet>,
    /// TLS, if it is ended here.
    pub tls: Option<TlsServerSpec>,
    /// Bounds.
    pub bounds: ServerBounds,
}

/// TLS as a server. All PEM.
#[derive(Debug, Clone)]
pub struct TlsServerSpec {
    /// Our chain.
    pub cert: Vec<u8>,
    /// Its key.
    pub key: SecretString,
    /// Roots that client certificates must chain to; then a certificate is required.
    pub client_ca: Option<Vec<u8>>,
}

/// Fixed bounds of the HTTP edge (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct ServerBounds {
    /// Bytes of a request body: default 16 MiB.
    pub body_bytes: usize,
    /// Bytes of a request target: default 8 KiB.
    pub target_bytes: usize,
    /// Bytes of one header field: default 16 KiB.
    pub field_bytes: usize,
    /// Bytes of all header fields: default 32 KiB.
    pub head_bytes: usize,
    /// Header fields: default 100.
    pub fields: usize,
    /// Connections at once: default 20,000; then accepting pauses.
    pub connections: usize,
    /// Whether no connection is accepted while memory is short: default true. Operators, and who asks whether the process is
    /// alive, are accepted all the same.
    pub sheds: bool,
    /// Connections of one peer address: default 4,096; more are closed.
    pub connections_per_peer: usize,
    /// HTTP/2 streams of one connection: default 100.
    pub h2_streams: u32,
    /// Bytes that a client may send on one HTTP/2 stream before they are taken: default 64 KiB.
    pub h2_stream_window: u32,
    /// The same on all streams of a connection: default 1 MiB.
    pub h2_connection_window: u32,
    /// HTTP/2 streams that a client reset before they were looked at: default 20; then the connection ends.
    pub h2_pending_resets: usize,
    /// HTTP/2 streams that we had to reset for a fault of the client's: default 128; then the connection ends.
    pub h2_local_resets: usize,
    /// Time for a TLS handshake: default 10 s.
    pub handshake: Duration,
    /// Time until a request's headers are complete: default 10 s.
    pub headers: Duration,
    /// Time until a request's body is complete: default 30 s.
    pub body: Duration,
    /// Time a connection may stay idle: default 75 s.
    pub idle: Duration,
    /// Time a client may not read while something is there to be written: default 30 s.
    pub write_stall: Duration,
    /// Time for requests in flight after the stop signal: default 30 s.
    pub drain: Duration,
}

impl Default for ServerBounds {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            body_bytes: 16 << 20,
            target_bytes: 8 << 10,
            field_bytes: 16 << 10,
            head_bytes: 32 << 10,
            fields: 100,
            connections: 20_000,
            sheds: true,
            connections_per_peer: 4_096,
            h2_streams: 100,
            h2_stream_window: 64 << 10,
            h2_connection_window: 1 << 20,
            h2_pending_resets: 20,
            h2_local_resets: 128,
            handshake: secs(10),
            headers: secs(10),
            body: secs(30),
            idle: secs(75),
            write_stall: secs(30),
            drain: secs(30),
        }
    }
}
