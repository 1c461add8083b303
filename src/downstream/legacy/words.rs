//! How the handshake era words what the canonical model says.

use super::{convert, tasks};
use crate::{
    call::{InputRequired, Op, Page, ServerCard, TaskOp},
    downstream::{
        SERVER_INFO, exchange::Wording, hop_local, is_about, lacks, problem::resource_not_found,
        push_cursor,
    },
    json::Json,
    jsonrpc::RpcError,
    protocol::{Era, Revision, meta},
};

/// Words things for the handshake era.
pub(super) struct Words;

impl Wording for Words {
    fn era(&self) -> Era {
        Era::Legacy
    }

    fn result(&self, op: &Op, revision: Revision, result: Json) -> Json {
        match op {
            Op::Task(TaskOp::Get | TaskOp::Cancel, _) => tasks::state(result.root()),
            Op::Task(TaskOp::Result, handle) => {
                tasks::related(&convert::result(op, revision, result), handle)
            }
            Op::ListTasks(_) => tasks::listed(&result),
            Op::Task(TaskOp::Update, _)
            | Op::Discover
            | Op::List(..)
            | Op::CallTool(_)
            | Op::GetPrompt(_)
            | Op::ReadResource(_)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::Listen(_) => convert::result(op, revision, result),
        }
    }

    fn task(&self, task: Json) -> Json {
        tasks::created(&task)
    }

    fn input_required(&self, _: &InputRequired) -> Option<Json> {
        // Asked with requests of ours, never with a result.
        None
    }

    fn failure(&self, op: &Op, mut error: RpcError) -> RpcError {
        // With the evidence of `data.uri` this is the older code for a resource that is not there (PROTOCOL D6).
        if let Op::ReadResource(uri) = op
            && is_about(&error, uri)
        {
            error.code = resource_not_found(Era::Legacy);
        }
        hop_local(op, error, Era::Legacy)
    }

    fn page_head(&self, page: &Page, out: &mut Vec<u8>) {
        push_cursor(out, page);
        let lacks = lacks(page);
        if !lacks.is_empty() {
            out.extend_from_slice(b"\"_meta\":");
            out.extend_from_slice(meta::object_of(&lacks).bytes());
            out.push(b',');
        }
    }

    fn card(&self, card: &ServerCard, revision: Revision) -> Json {
        let mut members = vec![
            ("protocolVersion", Json::string(revision.as_str())),
            ("capabilities", card.capabilities.clone()),
            ("serverInfo", Json::literal(SERVER_INFO)),
        ];
        if let Some(instructions) = &card.instructions {
            members.push(("instructions", Json::string(instructions)));
        }
        meta::object_of(&members)
    }
}
