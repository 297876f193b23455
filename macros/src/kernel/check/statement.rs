//! Statements.

use tilewright_vocabulary::DType;

use super::Checker;
use crate::kernel::ast::{
    Allocate, Assignment, BindingKind, Expr, ExprKind, For, IfStatement, Let, Name, Role, Statement, Store,
    Tensor, TensorType, Update,
};
use crate::kernel::types::ScalarType;

impl Checker<'_> {
    /// Checks statements in order, in the present scope.
    pub(super) fn statements(&mut self, statements: &mut [Statement]) {
        for statement in statements {
            match statement {
                Statement::Allocate(node) => self.allocate(node),
                Statement::Let(node) => self.binding(node),
                Statement::For(node) => self.for_loop(node),
                Statement::Store(node) => self.store(node),
                Statement::Update(node) => self.update(node),
                Statement::If(node) => self.conditional(node),
                Statement::Block(body) => self.scoped(|checker| checker.statements(body)),
                Statement::Invalid(name, _) => self.invalid(name.as_ref()),
            }
        }
    }

    fn allocate(&mut self, node: &mut Allocate) {
        let name = node.name.ident.clone();
        let declared = self.results.iter().find(|(result, _)| self.at_top() && name == result);
        let declared = declared.map(|(_, ty)| ty.clone());
        if let Some(annotation) = &mut node.annotation {
            self.dims(annotation, "no argument has it as a dimension of its own");
        }
        let ty = match (node.annotation.clone(), declared) {
            (Some(annotation), Some(declared)) => {
                if !annotation.same(&declared) {
                    self.diagnostics.error_over(
                        annotation.extent,
                        format!("`{name}` has another type in the signature"),
                        "leave the type out here: the signature gives it",
                    );
                }
                Some(declared)
            }
            (annotation, declared) => annotation.or(declared),
        };
        let returned = self.at_top() && self.result_names.contains(&name.to_string());
        if ty.is_none() && !(self.incomplete && returned) {
            self.diagnostics.error(
                &name,
                format!("the type of the tensor `{name}` is not known"),
                format!(
                    "write `let mut {name}: Tensor<f32, M, N> = …;`; only results take it from the signature"
                ),
            );
        }
        if let Some(fill) = &mut node.fill {
            self.expression(fill);
            if let Some(ty) = &ty {
                self.expect_known(fill, ty.element);
            }
        }
        let role = if ty.is_some() { Role::Local } else { Role::Invalid };
        node.name.binding = Some(self.declare(&name, BindingKind::Tensor(Tensor::new(ty, role))));
    }

    /// A statement whose error the parser reported: its name is declared, so that its uses are not reported.
    fn invalid(&mut self, name: Option<&Name>) {
        self.incomplete_body = true;
        if let Some(name) = name {
            self.declare(&name.ident, BindingKind::Tensor(Tensor::new(None, Role::Invalid)));
        }
    }

    fn binding(&mut self, node: &mut Let) {
        let data = self.expression(&mut node.value);
        if let Some((ty, _)) = node.annotation {
            self.expect_known(&node.value, ty);
        }
        let ty = node.value.ty;
        let kind = match node.mutable {
            Some(_) => BindingKind::Accumulator { ty },
            None => BindingKind::Let { ty, data },
        };
        node.name.binding = Some(self.declare(&node.name.ident, kind));
    }

    fn for_loop(&mut self, node: &mut For) {
        for bound in [&mut node.start, &mut node.end].into_iter().chain(&mut node.step) {
            let data = self.expression(bound);
            self.expect_known(bound, ScalarType::Usize);
            if data {
                self.diagnostics.error_over(
                    bound.extent,
                    "the bounds of a loop cannot depend on data",
                    "use dimensions, `usize` arguments and outer loops, and an `if` inside for what depends on data",
                );
            }
        }
        if let Some(Expr { kind: ExprKind::Int(literal, 0), .. }) = &node.step {
            self.diagnostics.error(literal, "a step of 0 never ends", "write a step of at least 1");
        }
        self.scoped(|checker| {
            let binding = checker.declare(&node.variable.ident, BindingKind::Loop);
            node.variable.binding = Some(binding);
            checker.scoped(|checker| checker.statements(&mut node.body));
        });
    }

    fn store(&mut self, node: &mut Store) {
        self.expression(&mut node.value);
        for index in &mut node.indices {
            self.expression(index);
            self.expect_known(index, ScalarType::Usize);
        }
        let ident = &node.tensor.ident;
        let Some(id) = self.tensor(ident, node.indices.len(), node.brackets) else { return };
        node.tensor.binding = Some(id);
        let BindingKind::Tensor(tensor) = &mut self.bindings[id.0].kind else { return };
        tensor.written = true;
        if tensor.role == Role::Input {
            self.diagnostics.error(
                ident,
                format!("the argument `{ident}` is only read"),
                "take `&mut Tensor<…>` to update it in place, or store to a tensor of the kernel's own",
            );
        }
        if let Some(element) = tensor.ty.as_ref().map(|ty| ty.element) {
            self.expect_known(&node.value, element);
        }
        self.use_assignment(node.op, &node.value);
    }

    fn update(&mut self, node: &mut Update) {
        self.expression(&mut node.value);
        let ident = &node.scalar.ident;
        let Some(id) = self.find(ident) else {
            self.unknown_name(ident);
            return;
        };
        node.scalar.binding = Some(id);
        let help = match &self.bindings[id.0].kind {
            BindingKind::Accumulator { ty } => {
                let ty = *ty;
                self.expect(&node.value, ty);
                self.use_assignment(node.op, &node.value);
                return;
            }
            BindingKind::Tensor(Tensor { role: Role::Invalid, .. }) => return,
            BindingKind::Tensor(tensor) => {
                format!("assign an element: `{ident}[[{}]] = …;`", tensor.example_indices())
            }
            BindingKind::Let { .. } => format!("declare it with `let mut {ident} = …;`"),
            _ => format!("copy it first: `let mut x = {ident};`"),
        };
        let what = self.bindings[id.0].kind.describe();
        let problem = match node.op {
            Assignment::Set => format!("`{ident}` is {what} and cannot be assigned"),
            _ => format!("`{ident}` is {what} and cannot be updated"),
        };
        self.diagnostics.error(ident, problem, help);
    }

    fn conditional(&mut self, node: &mut IfStatement) {
        self.expression(&mut node.condition);
        self.expect_known(&node.condition, ScalarType::Element(DType::Bool));
        self.scoped(|checker| checker.statements(&mut node.then));
        if let Some(otherwise) = &mut node.otherwise {
            self.scoped(|checker| checker.statements(otherwise));
        }
    }
}

impl TensorType {
    /// Whether both are written alike.
    fn same(&self, other: &TensorType) -> bool {
        let text = |ty: &TensorType| ty.dims.iter().map(|dim| dim.text()).collect::<Vec<_>>();
        self.element == other.element && text(self) == text(other)
    }
}
