//! What a policy takes arguments for, before any tool is known: from the operators it puts them to.
//!
//! Only for validation when a set is loaded: whether the tools agree is found out when there are tools. Where nothing tells,
//! an argument is taken for a string.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "Cedar's syntax grows, and only some of it says what an argument is"
)]

use cedar_policy::pst::{BinaryOp, Expr, Literal, UnaryOp, Var};

use super::{
    mention::{Paths, path},
    shape::{Shape, Shapes},
};

/// The shapes of everything below `context.args` that is looked at.
pub(super) fn infer<'a>(paths: &Paths, conditions: impl Iterator<Item = &'a Expr>) -> Shapes {
    let mut shapes = Shapes::default();
    mention(paths, &mut Vec::new(), &mut shapes);
    for condition in conditions {
        demand(condition, Some(Shape::Bool), &mut shapes);
    }
    shapes
}

fn mention<'a>(paths: &'a Paths, at: &mut Vec<&'a str>, shapes: &mut Shapes) {
    for (name, below) in &paths.below {
        at.push(name);
        if below.below.is_empty() {
            shapes.demand(at, None);
        } else {
            mention(below, at, shapes);
        }
        at.pop();
    }
}

/// Walks an expression that must be of a shape, as far as that is known.
fn demand(expr: &Expr, shape: Option<Shape>, shapes: &mut Shapes) {
    if let Some((var, path)) = path(expr) {
        if let (Var::Context, ["args", rest @ ..]) = (var, &path[..])
            && shape.is_some()
        {
            shapes.demand(rest, shape);
        }
        return;
    }
    match expr {
        Expr::UnaryOp { op, expr } => {
            let inner = match op {
                UnaryOp::Not => Some(Shape::Bool),
                UnaryOp::Neg => Some(Shape::Long),
                UnaryOp::IsEmpty => Some(Shape::Set(Box::new(Shape::Text))),
                _ => None,
            };
            demand(expr, inner, shapes);
        }
        Expr::BinaryOp { op, left, right } => {
            let (one, two) = match op {
                BinaryOp::And | BinaryOp::Or => (Some(Shape::Bool), Some(Shape::Bool)),
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                    (Some(Shape::Long), Some(Shape::Long))
                }
                BinaryOp::Less | BinaryOp::LessEq | BinaryOp::Greater | BinaryOp::GreaterEq => {
                    (Some(Shape::Long), Some(Shape::Long))
                }
                BinaryOp::Eq | BinaryOp::NotEq => (shape_of(right), shape_of(left)),
                BinaryOp::Contains => {
                    let element = shape_of(right).or_else(|| element_of(left));
                    let element = element.unwrap_or(Shape::Text);
                    (Some(Shape::Set(Box::new(element.clone()))), Some(element))
                }
                BinaryOp::ContainsAll | BinaryOp::ContainsAny => {
                    let element = element_of(right).or_else(|| element_of(left));
                    let set = Some(Shape::Set(Box::new(element.unwrap_or(Shape::Text))));
                    (set.clone(), set)
                }
                _ => (None, None),
            };
            demand(left, one, shapes);
            demand(right, two, shapes);
        }
        Expr::Like { expr, .. } => demand(expr, Some(Shape::Text), shapes),
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => {
            demand(cond, Some(Shape::Bool), shapes);
            demand(then_expr, shape.clone(), shapes);
            demand(else_expr, shape, shapes);
        }
        Expr::Set(exprs) => {
            let element = match shape {
                Some(Shape::Set(element)) => Some(*element),
                _ => None,
            };
            for expr in exprs {
                demand(expr, element.clone(), shapes);
            }
        }
        Expr::Record(fields) => fields.values().for_each(|expr| demand(expr, None, shapes)),
        Expr::GetAttr { expr, .. } | Expr::HasAttr { expr, .. } | Expr::Is { expr, .. } => {
            demand(expr, None, shapes);
        }
        _ => {}
    }
}

/// The shape of an expression whose form tells.
fn shape_of(expr: &Expr) -> Option<Shape> {
    match expr {
        Expr::Literal(Literal::Bool(_)) | Expr::Like { .. } | Expr::HasAttr { .. } => {
            Some(Shape::Bool)
        }
        Expr::Literal(Literal::Long(_)) => Some(Shape::Long),
        Expr::Literal(Literal::String(_)) => Some(Shape::Text),
        Expr::Set(exprs) => Some(Shape::Set(Box::new(
            exprs.iter().find_map(|expr| shape_of(expr))?,
        ))),
        Expr::UnaryOp { op, .. } => match op {
            UnaryOp::Not | UnaryOp::IsEmpty => Some(Shape::Bool),
            UnaryOp::Neg => Some(Shape::Long),
            _ => None,
        },
        Expr::BinaryOp { op, .. } => match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => Some(Shape::Long),
            BinaryOp::GetTag => Some(Shape::Text),
            _ => Some(Shape::Bool),
        },
        _ => None,
    }
}

fn element_of(expr: &Expr) -> Option<Shape> {
    match shape_of(expr)? {
        Shape::Set(element) => Some(*element),
        _ => None,
    }
}
