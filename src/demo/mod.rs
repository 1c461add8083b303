//! STAND-IN, dropped at merge: the shape of the demo servers that the command line is written against.
#![allow(missing_docs, clippy::unused_async)]

use std::io;

use crate::tasks::Tasks;

#[derive(Clone, Debug)]
pub struct Demo {
    pub weather_url: String,
    pub calendar_url: String,
}

pub async fn start(_tasks: &Tasks) -> io::Result<Demo> {
    Ok(Demo {
        weather_url: "http://127.0.0.1:9/mcp".into(),
        calendar_url: "http://127.0.0.1:9/mcp".into(),
    })
}

pub async fn travel_stdio() -> io::Result<()> {
    Ok(())
}
