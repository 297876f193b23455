//! Recognition: the text of one line.

use tilewright_session::{HostTensor, Model, Session};

use crate::Result;
use crate::picture::Picture;

/// The height that the model sees.
const HEIGHT: usize = 48;

/// Widths are rounded up to a multiple of this, so that lines of about the same length share their kernels.
const STEP: usize = 160;

/// Reads lines.
pub(crate) struct Reader {
    session: Session,
    /// The characters of the model's classes. The first class is no character.
    characters: Vec<String>,
}

impl Reader {
    /// A reader with a model whose file lists its characters.
    pub(crate) fn new(model: &Model) -> Result<Self> {
        let list = model.info().metadata.get("character").ok_or("the model's file lists no characters")?;
        let mut characters: Vec<String> = list.lines().map(str::to_owned).collect();
        characters.push(" ".to_owned());
        Ok(Reader { session: Session::new(model), characters })
    }

    /// The text of one line, from what the model sees of it.
    pub(crate) fn read(&mut self, input: &HostTensor) -> Result<String> {
        let outputs = self.session.run(&[("x", input)])?;
        let &[1, _, classes] = outputs[0].shape() else { return Err("the model gives another shape".into()) };
        Ok(self.decode(outputs[0].expect::<f32>()?, classes))
    }

    /// The likeliest class of each step, without repetitions and steps between characters.
    fn decode(&self, probabilities: &[f32], classes: usize) -> String {
        let mut text = String::new();
        let mut last = 0;
        for step in probabilities.chunks_exact(classes) {
            let best =
                (1..classes).fold(0, |best, class| if step[class] > step[best] { class } else { best });
            if best != 0 && best != last {
                text.push_str(self.characters.get(best - 1).map_or("", |character| character));
            }
            last = best;
        }
        text
    }
}

/// The model's input for a picture of one line.
pub(crate) fn input(line: &Picture) -> Result<HostTensor> {
    let width = (HEIGHT * line.width).div_ceil(line.height).max(1);
    let padded = width.next_multiple_of(STEP);
    let planes = line.planes(width, HEIGHT);
    // Behind the line there is nothing, which is 0 after scaling to -1..1.
    let mut input = vec![0f32; 3 * HEIGHT * padded];
    for (row, values) in planes.chunks_exact(width).enumerate() {
        let target = &mut input[row * padded..row * padded + width];
        target.iter_mut().zip(values).for_each(|(target, value)| *target = value / 127.5 - 1.0);
    }
    Ok(HostTensor::new(&[1, 3, HEIGHT, padded], input)?)
}
