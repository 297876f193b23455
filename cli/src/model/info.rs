//! The inputs and outputs of a model, and what its passes made of it.

use serde_json::{Map, Value, json};
use tilewright_session::{Model, Port, StaysFloat};

use crate::Outcome;
use crate::arguments::ModelInfo;
use crate::model::load;

pub(super) fn run(options: &ModelInfo) -> Outcome {
    let model = load(&options.model)?;
    if options.json { Ok(format!("{:#}\n", object(&model))) } else { Ok(text(&model)) }
}

fn object(model: &Model) -> Value {
    let (info, buckets) = (model.info(), model.buckets());
    let ports = |ports: &[Port]| -> Vec<Value> {
        ports.iter().map(|port| json!({ "name": port.name, "type": port.ty.to_string() })).collect()
    };
    let floats = info.stays_float.iter().map(|StaysFloat { node, operator, reason }| {
        json!({ "node": node.to_string(), "operator": operator.to_string(), "reason": reason.to_string() })
    });
    json!({
        "inputs": ports(&info.inputs),
        "outputs": ports(&info.outputs),
        "buckets": buckets.iter().map(|bucket| (bucket.name.clone(), json!(bucket.bounds))).collect::<Map<_, _>>(),
        "accuracy": model.accuracy(),
        "metadata": info.metadata,
        "warnings": info.warnings,
        "imported_calls": info.imported_bindings,
        "calls": info.bindings,
        "integer_products": info.integer_products,
        "float_products": floats.collect::<Vec<Value>>(),
    })
}

fn text(model: &Model) -> String {
    let (info, buckets) = (model.info(), model.buckets());
    let mut text = String::new();
    for (title, ports) in [("inputs", &info.inputs), ("outputs", &info.outputs)] {
        text += &format!("{title}:\n");
        ports.iter().for_each(|port| text += &format!("  {}: {}\n", port.name, port.ty));
    }
    buckets.iter().for_each(|bucket| text += &format!("bucket {bucket}\n"));
    if let Some(accuracy) = model.accuracy() {
        text += &format!("products may be off by {accuracy:e} of themselves\n");
    }
    text += &format!("{} calls as imported, {} after all passes\n", info.imported_bindings, info.bindings);
    if info.integer_products > 0 || !info.stays_float.is_empty() {
        let floats = info.stays_float.len();
        text += &format!(
            "products of quantised tensors: {} on integers, {floats} in floats\n",
            info.integer_products
        );
        for StaysFloat { node, operator, reason } in &info.stays_float {
            text += &format!("  {node} ({operator}) stays in floats: {reason}\n");
        }
    }
    for (key, value) in &info.metadata {
        let short: String = value.chars().take(60).collect();
        text += &format!("  {key}: {}\n", short.replace('\n', " "));
    }
    info.warnings.iter().for_each(|warning| text += &format!("warning: {warning}\n"));
    text
}
