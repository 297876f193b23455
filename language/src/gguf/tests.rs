//! Reading files, good and hostile ones.

use proptest::prelude::*;

use super::testing::Builder;
use super::*;

fn sample() -> Builder {
    Builder::new()
        .text("general.architecture", "llama")
        .u32("general.alignment", 32)
        .f32("epsilon", 0.5)
        .texts("tokens", &["a", "bc", ""])
        .integers("types", &[1, -3])
        .tensor("floats", &[2, 3], BlockType::F32, (0..6).flat_map(|n| (n as f32).to_le_bytes()).collect())
        .tensor("bytes", &[1, 2, 32], BlockType::Q8_0, vec![7; 68])
}

#[test]
fn metadata_and_tensors_come_back() {
    let file = sample().file();
    assert_eq!(file.metadata["epsilon"], Value::Float(0.5));
    assert_eq!(file.metadata["types"], Value::Array(vec![Value::Signed(1), Value::Signed(-3)]));
    assert_eq!(file.metadata["tokens"].as_array().unwrap()[1].as_text(), Some("bc"));
    assert_eq!(file.names().collect::<Vec<_>>(), ["bytes", "floats"]);
    let floats = file.tensor("floats").unwrap();
    assert_eq!((floats.shape, floats.kind), (&[2, 3][..], BlockType::F32));
    assert_eq!(crate::block::dequantise(floats.kind, floats.bytes), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(file.tensor("bytes").unwrap().bytes, [7; 68]);
    assert!(file.tensor("other").unwrap_err().to_string().contains("`other`"));
}

#[test]
fn a_mapped_file_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, sample().bytes()).unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.tensor("bytes").unwrap().bytes, [7; 68]);
    assert!(File::open(folder.path().join("none.gguf")).is_err());
}

/// The message about a file that is wrong in one way.
fn message(builder: &Builder) -> String {
    File::from_bytes(builder.bytes()).err().expect("the file is wrong").to_string()
}

#[test]
fn what_is_wrong_is_named() {
    let plain = |shape: &[usize], kind, count| Builder::new().tensor("w", shape, kind, vec![0; count]);
    assert!(message(&plain(&[4, 33], BlockType::Q4_1, 80)).contains("`w`"), "no whole blocks");
    assert!(message(&plain(&[4, 32], BlockType::Q4_1, 79)).contains("inside of the file"));
    assert!(message(&plain(&[0, 32], BlockType::Q4_1, 0)).contains("blocks"));
    assert!(message(&plain(&[1 << 62, 1 << 62], BlockType::F32, 4)).contains("inside of the file"));
    let twice = plain(&[1], BlockType::F32, 4).tensor("w", &[1], BlockType::F32, vec![0; 4]);
    assert!(message(&twice).contains("twice"));
    assert!(message(&Builder::new().u32("a", 1).u32("a", 2)).contains("twice"));
    assert!(message(&Builder::new().u32("general.alignment", 3)).contains("power of two"));
    let error = File::from_bytes(*b"GGML....").err().unwrap().to_string();
    assert!(error.contains("GGUF"), "{error}");
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample().bytes();
    for length in 0..bytes.len() {
        assert!(File::from_bytes(&bytes[..length]).is_err(), "the first {length} bytes");
    }
}

proptest! {
    #[test]
    fn changed_bytes_never_panic(changes in proptest::collection::vec((0usize..400, any::<u8>()), 1..6)) {
        let mut bytes = sample().bytes();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        if let Ok(file) = File::from_bytes(bytes) {
            for name in file.names() {
                let tensor = file.tensor(name).unwrap();
                prop_assert_eq!(tensor.bytes.len() % tensor.kind.bytes(), 0);
            }
        }
    }
}
