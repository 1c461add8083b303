//! Methods and params to operations, for methods that only some revisions have: tasks and skills.
//!
//! Whether the endpoint offers them is judged in the stack; here a method exists in a revision or it does not.

use super::read::{BadParams, Head, text};
use crate::{
    call::{Op, TaskOp},
    protocol::{Features, methods, methods::ListKind},
};

/// The operation that `method` asks for; `None` if a revision with these `features` has no such method.
///
/// # Errors
/// When the params lack what the method needs.
pub(super) fn op(
    method: &str,
    head: &Head<'_>,
    features: &Features,
) -> Result<Option<Op>, BadParams> {
    let (core, extension) = (features.core_tasks, features.task_extension);
    let task = match method {
        methods::TASKS_GET if core || extension => TaskOp::Get,
        methods::TASKS_CANCEL if core || extension => TaskOp::Cancel,
        methods::TASKS_RESULT if core => TaskOp::Result,
        methods::TASKS_UPDATE if extension => TaskOp::Update,
        methods::SKILLS_LIST if features.skills => {
            return Ok(Some(Op::List(ListKind::Skills, head.cursor()?)));
        }
        methods::SKILLS_GET if features.skills => {
            return Ok(Some(Op::GetSkill(text(head.uri, "uri")?)));
        }
        methods::DIRECTORY_READ if features.skills => {
            let uri = text(head.uri, "uri")?;
            return Ok(Some(Op::ReadDirectory(uri, head.cursor()?)));
        }
        methods::TASKS_LIST if core => return Ok(Some(Op::ListTasks(head.cursor()?))),
        _ => return Ok(None),
    };
    Ok(Some(Op::Task(task, text(head.task_id, "taskId")?)))
}
