//! The three servers of `usher demo`: *travel*, *weather* and *calendar*.
//!
//! They are real MCP servers that the gateway reaches over real transports, each in a revision of its own: travel over
//! stdio (2025-11-25), weather over Streamable HTTP (2026-07-28), calendar over Streamable HTTP (2025-06-18). They use
//! none of the gateway's code, so that a mistake on one side is not repeated on the other.
//!
//! What they offer is small, built in and the same on every run: no network, no files, and a calendar that stands still
//! on 2026-09-01. Nothing is booked, sent or forecast by them.

mod answers;
mod calendar;
mod forecast;
mod frame;
mod http;
mod legacy;
mod mirror;
mod modern;
mod places;
mod schema;
mod server;
mod session;
mod sessions;
mod stdio;
mod travel;
mod turn;
mod weather;

#[cfg(test)]
mod tests;

use std::{io, sync::Arc};

use crate::tasks::Tasks;

/// The two demo servers that listen on loopback; the third is [`travel_stdio`], run by a child process.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Endpoint of the weather server, which speaks 2026-07-28 only.
    pub weather_url: String,
    /// Endpoint of the calendar server, which speaks 2025-06-18 only.
    pub calendar_url: String,
}

/// Starts weather and calendar, each on a free port of 127.0.0.1. Both serve until the token of `tasks` is cancelled.
///
/// # Errors
/// When a loopback port cannot be bound.
pub async fn start(tasks: &Tasks) -> io::Result<Demo> {
    let tasks = tasks.child();
    let weather = Arc::new(weather::Weather::new());
    let ticking = weather.clone();
    tasks.spawn(async move { ticking.keep_measuring().await });
    let weather = http::Face::Modern(modern::Modern::new(weather, tasks.clone()));
    let calendar = Arc::new(calendar::Calendar::new());
    let calendar = http::Face::Sessions(sessions::Sessions::new(calendar, tasks.clone()));
    Ok(Demo {
        weather_url: http::listen(&tasks, weather).await?,
        calendar_url: http::listen(&tasks, calendar).await?,
    })
}

/// Serves travel on this process's stdin and stdout until stdin ends. It speaks 2025-11-25 only and keeps one trip
/// basket per process.
///
/// # Errors
/// When stdin or stdout fails.
pub async fn travel_stdio() -> io::Result<()> {
    let travel = travel::Travel::new();
    stdio::serve(&travel, tokio::io::stdin(), tokio::io::stdout()).await
}
