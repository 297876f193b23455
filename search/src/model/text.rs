//! Trained trees as JSON, checked on the way in.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bins::column_count;
use super::booster::Booster;
use super::draft::Draft;
use super::tree::{MalformedTree, Node, Tree};

const FORMAT: &str = "tilewright cost model";
/// Raised whenever the meaning of the text changes.
const VERSION: u32 = 1;

/// The reason why a text is no usable cost model.
#[derive(Debug, Error)]
pub enum ModelTextError {
    /// The text is not JSON of the right structure, for example because it was cut off.
    #[error("the cost model cannot be read: {0}; delete it, or write it anew from a trained model")]
    Structure(#[from] serde_json::Error),
    /// The text is JSON for something else.
    #[error("expected \"format\": \"{FORMAT}\", found \"{found}\": this is not a cost model")]
    Format {
        /// The format that the text names.
        found: String,
    },
    /// The text comes from another version of the format.
    #[error("the cost model has format version {found}, expected {VERSION}: train it anew with this version")]
    Version {
        /// The version that the text states.
        found: u32,
    },
    /// The features are extracted differently from when the model was trained.
    #[error(
        "the cost model was trained on rows of {found} features, expected {expected}: train it anew with these features"
    )]
    Width {
        /// The features in a row of the model.
        found: usize,
        /// The features in a row now.
        expected: usize,
    },
    /// A tree is broken.
    #[error("tree {tree} of the cost model is malformed: {reason}")]
    Tree {
        /// The index of the tree, from 0.
        tree: usize,
        /// The fault.
        reason: MalformedTree,
    },
    /// The line that the trees correct is broken.
    #[error(
        "the draft line of the cost model has offset {offset} and slope {slope}, expected finite numbers"
    )]
    Draft {
        /// The constant part.
        offset: f64,
        /// The factor of the prior.
        slope: f64,
    },
}

/// The fields that every version of the format has.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

// Numbers are written as the f64 that an f32 equals: rounding that back gives the f32 again, whatever the last digit
// of the decimal does.

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelText {
    format: String,
    version: u32,
    width: usize,
    draft: DraftText,
    trees: Vec<Vec<NodeText>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DraftText {
    offset: f64,
    slope: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum NodeText {
    Leaf(f64),
    Split { column: u32, at_least: f64, left: u32 },
}

impl From<&Node> for NodeText {
    fn from(node: &Node) -> Self {
        match *node {
            Node::Leaf(value) => Self::Leaf(f64::from(value)),
            Node::Split { column, threshold, left } => {
                Self::Split { column, at_least: f64::from(threshold), left }
            }
        }
    }
}

impl From<NodeText> for Node {
    fn from(text: NodeText) -> Self {
        match text {
            NodeText::Leaf(value) => Self::Leaf(value as f32),
            NodeText::Split { column, at_least, left } => {
                Self::Split { column, threshold: at_least as f32, left }
            }
        }
    }
}

/// The text of a trained ensemble, one line.
pub(super) fn print(booster: &Booster) -> String {
    let text = ModelText {
        format: FORMAT.to_owned(),
        version: VERSION,
        width: booster.width,
        draft: DraftText { offset: f64::from(booster.draft.offset), slope: f64::from(booster.draft.slope) },
        trees: booster.trees.iter().map(|tree| tree.nodes().iter().map(NodeText::from).collect()).collect(),
    };
    serde_json::to_string(&text).expect("strings, integers and finite numbers always have a JSON form")
}

/// Reads an ensemble for rows of `width` features. Whatever the text says, the ensemble predicts without panicking.
pub(super) fn parse(text: &str, width: usize) -> Result<Booster, ModelTextError> {
    let Header { format, version } = serde_json::from_str(text)?;
    if format != FORMAT {
        return Err(ModelTextError::Format { found: format });
    }
    if version != VERSION {
        return Err(ModelTextError::Version { found: version });
    }
    let text: ModelText = serde_json::from_str(text)?;
    if text.width != width {
        return Err(ModelTextError::Width { found: text.width, expected: width });
    }
    let DraftText { offset, slope } = text.draft;
    let draft = Draft { offset: offset as f32, slope: slope as f32 };
    if !(draft.offset.is_finite() && draft.slope.is_finite()) {
        return Err(ModelTextError::Draft { offset, slope });
    }
    let tree = |(tree, nodes): (usize, Vec<NodeText>)| {
        let nodes = nodes.into_iter().map(Node::from).collect();
        Tree::new(nodes, column_count(width)).map_err(|reason| ModelTextError::Tree { tree, reason })
    };
    let trees = text.trees.into_iter().enumerate().map(tree).collect::<Result<_, _>>()?;
    Ok(Booster { width, draft, trees })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: &str = r#"{"format":"tilewright cost model","version":1,"width":2,"draft":{"offset":0.5,"slope":0.0},"trees":[[{"split":{"column":1,"at_least":0.25,"left":1}},{"leaf":-1.0},{"leaf":0.5}]]}"#;

    #[test]
    fn text_out_is_text_in() {
        let booster = parse(SMALL, 2).unwrap();
        assert_eq!(print(&booster), SMALL);
        assert_eq!((booster.tree_count(), booster.width()), (1, 2));
    }

    #[test]
    fn bad_texts_say_what_is_wrong() {
        let edited = |from: &str, to: &str| {
            assert!(SMALL.contains(from), "{from}");
            SMALL.replace(from, to)
        };
        for (text, complaint) in [
            (String::new(), "cannot be read: EOF"),
            (SMALL[..SMALL.len() - 9].to_owned(), "cannot be read: EOF"),
            ("[1, 2]".to_owned(), "cannot be read"),
            (r#"{"version": 1}"#.to_owned(), "missing field `format`"),
            (edited("tilewright cost model", "recipe"), "found \"recipe\": this is not a cost model"),
            (edited("\"version\":1", "\"version\":2"), "format version 2, expected 1"),
            (edited("\"width\":2", "\"width\":3"), "rows of 3 features, expected 2"),
            (edited("\"width\":2,", ""), "missing field `width`"),
            (edited("\"width\":2", "\"width\":2,\"depth\":1"), "unknown field `depth`"),
            (edited("\"offset\":0.5", "\"offset\":1e300"), "offset 1000"),
            (
                edited("\"leaf\":0.5", "\"leaf\":1e39"),
                "tree 0 of the cost model is malformed: node 2 holds inf",
            ),
            (edited("\"leaf\":0.5", "\"leaf\":null"), "invalid type: null"),
            (edited("\"left\":1", "\"left\":2"), "node 0 leads to node 2"),
            (edited("\"left\":1", "\"left\":0"), "node 0 leads to node 0"),
            (edited("\"left\":1", "\"left\":-1"), "invalid value"),
            (edited("\"column\":1", "\"column\":3"), "reads column 3, expected less than 3"),
        ] {
            let error = parse(&text, 2).unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}\n  gives: {error}\n  expected: {complaint}");
        }
    }

    proptest! {
        #[test]
        fn every_number_survives(offset in any::<f32>(), value in any::<f32>(), at_least in any::<f32>()) {
            prop_assume!(offset.is_finite() && value.is_finite() && at_least.is_finite());
            let nodes =
                vec![Node::Split { column: 0, threshold: at_least, left: 1 }, Node::Leaf(value), Node::Leaf(offset)];
            let trees = vec![Tree::new(nodes, 1).unwrap()];
            let booster = Booster { width: 0, draft: Draft { offset, slope: value }, trees };
            prop_assert_eq!(parse(&print(&booster), 0).unwrap(), booster);
        }

        #[test]
        fn damaged_texts_never_panic(at in 0..SMALL.len(), byte in any::<char>()) {
            let mut text: Vec<char> = SMALL.chars().collect();
            text[at] = byte;
            let text: String = text.into_iter().collect();
            if let Ok(booster) = parse(&text, 2) {
                let program = super::super::ProgramFeatures::new(vec![0.5, f32::NAN], 2, 1.0).unwrap();
                prop_assert!(booster.predict(&[program])[0].is_finite());
            }
        }
    }
}
