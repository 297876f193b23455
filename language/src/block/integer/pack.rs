//! From rows of blocks to panels whose integers are unsigned and stand in groups of four.

use half::f16;
use tilewright::Tensor;

use crate::block::BlockType;
use crate::block::decode::q6_k_integers;
use crate::block::integer::{Planes, Q4K};
use crate::block::pack::{Blocks, LANES, tensor};
use crate::error::Error;

/// How many integers an instruction adds up.
const GROUP: usize = 4;

impl Planes {
    /// The planes of a matrix; `None` where its elements are floats.
    pub(in crate::block) fn pack(kind: BlockType, blocks: &Blocks<'_>) -> Result<Option<Self>, Error> {
        let shape = [blocks.panels(), blocks.blocks];
        let five = |count: usize, fields: &dyn Fn(&[u8], &mut [u8])| {
            let plane = blocks.grouped(count, GROUP, fields);
            tensor(plane, [shape[0], shape[1], count / GROUP, LANES, GROUP])
        };
        let six = |parts: usize, count: usize, fields: &dyn Fn(&[u8], &mut [u8])| {
            let plane = blocks.grouped(parts * count, GROUP, fields);
            tensor(plane, [shape[0], shape[1], parts, count / GROUP, LANES, GROUP])
        };
        Ok(Some(match kind {
            BlockType::F32 | BlockType::F16 => return Ok(None),
            BlockType::Q4_0 => {
                let quants = five(16, &|block, own| own.copy_from_slice(&block[2..18]))?;
                Planes::Q4_0 { quants, scales: blocks.halves(0)? }
            }
            BlockType::Q4_1 => {
                let quants = five(16, &|block, own| own.copy_from_slice(&block[4..20]))?;
                let minima: Tensor<f16, 3> = blocks.halves(2)?;
                Planes::Q4_1 { quants, scales: blocks.halves(0)?, minima }
            }
            BlockType::Q8_0 => {
                // A signed byte with its highest bit flipped is an unsigned one that is 128 larger.
                let quants = five(32, &|block, own| {
                    own.iter_mut().zip(&block[2..34]).for_each(|(own, byte)| *own = byte ^ 128)
                })?;
                Planes::Q8_0 { quants, scales: blocks.halves(0)? }
            }
            BlockType::Q4K => Planes::Q4K(Box::new(Q4K {
                quants: six(8, 16, &rejoined)?,
                factors: blocks.factors(0)?,
                least: blocks.factors(1)?,
                scales: blocks.halves(0)?,
                minima: blocks.halves(2)?,
            })),
            BlockType::Q6K => {
                let quants = six(16, 16, &|block, own| {
                    let integers = q6_k_integers(block);
                    own.iter_mut().zip(integers).for_each(|(own, integer)| *own = (integer + 32) as u8);
                })?;
                Planes::Q6K { quants, factors: blocks.signed(192, 16)?, scales: blocks.halves(208)? }
            }
        }))
    }
}

/// The bytes of a block of 256 4-bit integers, so that the halves of a byte belong to the same 32: files have the low halves of 32 bytes for
/// 32 integers, and the high ones for the next.
fn rejoined(block: &[u8], own: &mut [u8]) {
    for (bytes, own) in block[16..].chunks_exact(32).zip(own.chunks_exact_mut(32)) {
        for (part, own) in own.chunks_exact_mut(16).enumerate() {
            let integer = |place: usize| (bytes[place] >> (4 * part)) & 15;
            own.iter_mut()
                .enumerate()
                .for_each(|(place, own)| *own = integer(place) | (integer(place + 16) << 4));
        }
    }
}
