//! Usher: an MCP gateway. One endpoint in front of many MCP servers, for every client, in every revision.

pub mod json;
pub mod jsonrpc;
pub mod protocol;

pub mod call;
pub mod tasks;

pub mod catalog;
pub mod seal;

pub mod snapshot;
pub mod stage;

pub mod upstream;

pub mod stack;

pub mod downstream;
pub mod server;

pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
