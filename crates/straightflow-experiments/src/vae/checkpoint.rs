//! Everything that a run needs to resume, as bytes that know whether they are whole.
//!
//! ```text
//! straightflow checkpoint 1\n
//! name length (u32), name, data length (u64), data     for each part, little-endian
//! SHA-256 of all bytes before, as 64 hexadecimal digits
//! ```

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::Bytes;
use serde::{Deserialize, Serialize};
use straightflow_data::sha256;

use super::config::Config;
use super::error::VaeError;
use super::moments::Moments;
use super::protocol::Source;
use super::trainer::{Place, Trainer};
use crate::runner::Recorded;

const MAGIC: &[u8] = b"straightflow checkpoint 1\n";
const DIGEST: usize = 64;

/// What is not tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    config: Recorded<Config>,
    place: Place,
    moments_weight: f64,
}

fn broken(because: impl Into<String>) -> VaeError {
    VaeError::Checkpoint {
        because: because.into(),
    }
}

fn write_part(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    out.extend_from_slice(&(name.len() as u32).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(data.len() as u64).to_le_bytes());
    out.extend_from_slice(data);
}

/// The parts of a checkpoint.
struct Parts<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Parts<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, VaeError> {
        if !bytes.starts_with(MAGIC) {
            return Err(broken("is not one, or of another version"));
        }
        let body = bytes.len().checked_sub(DIGEST);
        let body = body.ok_or_else(|| broken("is cut off"))?;
        let (body, digest) = bytes.split_at(body);
        if sha256(body).as_bytes() != digest {
            return Err(broken("is damaged: its checksum does not fit"));
        }
        let mut rest = &body[MAGIC.len()..];
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let name = take(&mut rest, 4).and_then(|n| {
                let length = u32::from_le_bytes(n.try_into().ok()?);
                take(&mut rest, length as usize)
            });
            let data = take(&mut rest, 8).and_then(|n| {
                let length = u64::from_le_bytes(n.try_into().ok()?);
                take(&mut rest, usize::try_from(length).ok()?)
            });
            let part = name.zip(data);
            parts.push(part.ok_or_else(|| broken("is cut off within a part"))?);
        }
        Ok(Self(parts))
    }

    fn get(&self, name: &str) -> Result<&'a [u8], VaeError> {
        let part = self.0.iter().find(|(n, _)| *n == name.as_bytes());
        let part = part.ok_or_else(|| broken(format!("has no part `{name}`")))?;
        Ok(part.1)
    }

    fn module<M: Module>(&self, name: &str, module: M) -> Result<M, VaeError> {
        let bytes = Bytes::from_bytes_vec(self.get(name)?.to_vec());
        let record = ModuleRecord::from_bytes(bytes);
        let module = record.and_then(|record| module.try_load_record(record));
        module.map_err(|error| broken(format!("has a part `{name}` that does not fit: {error}")))
    }

    fn optimiser(&self, name: &str, fresh: ModuleOptimizer) -> Result<ModuleOptimizer, VaeError> {
        let bytes = self.get(name)?;
        if bytes.is_empty() {
            return Ok(fresh);
        }
        let record = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(bytes.to_vec()));
        let record = record
            .map_err(|error| broken(format!("has a part `{name}` that does not fit: {error}")))?;
        Ok(fresh.load_record(record))
    }

    fn numbers(&self, name: &str) -> Result<Vec<f32>, VaeError> {
        let (numbers, rest) = self.get(name)?.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(broken(format!("has a part `{name}` of a wrong length")));
        }
        Ok(numbers.iter().map(|n| f32::from_le_bytes(*n)).collect())
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

/// The epochs that a checkpoint has begun, complete or not.
///
/// # Errors
///
/// If the checkpoint is damaged.
pub fn epochs_begun(checkpoint: &[u8]) -> Result<u64, VaeError> {
    Ok(head(&Parts::read(checkpoint)?)?.place.begun())
}

fn head(parts: &Parts) -> Result<Head, VaeError> {
    serde_json::from_slice(parts.get("head")?)
        .map_err(|error| broken(format!("has a head that does not fit: {error}")))
}

impl<'a> Trainer<'a> {
    /// The whole state of the run: model, optimisers, what the estimator learned, the place in the
    /// data, the counts and the measurements. Random numbers are a function of the seed and the place.
    ///
    /// # Errors
    ///
    /// If a tensor cannot be packed.
    pub fn checkpoint(&self) -> Result<Vec<u8>, VaeError> {
        let pack = |error: burn::store::RecordError| broken(format!("cannot be made: {error}"));
        let head = Head {
            config: Recorded::new("vae", self.config.clone()),
            place: self.place.clone(),
            moments_weight: self.moments.weight,
        };
        let head = serde_json::to_vec(&head).expect("plain values with text as keys");
        let mut out = MAGIC.to_vec();
        write_part(&mut out, "head", &head);
        let model = self.model.clone().into_record().into_bytes();
        write_part(&mut out, "model", &model.map_err(pack)?);
        if let Some(state) = &self.state {
            let state = state.clone().into_record().into_bytes();
            write_part(&mut out, "state", &state.map_err(pack)?);
        }
        let optimisers = [
            ("optimiser", &self.optimiser),
            ("prior optimiser", &self.prior_optimiser),
            ("state optimiser", &self.state_optimiser),
        ];
        for (name, optimiser) in optimisers {
            let record = optimiser.to_record();
            match record.is_empty() {
                true => write_part(&mut out, name, &[]),
                false => write_part(&mut out, name, &record.into_bytes().map_err(pack)?),
            }
        }
        let bytes =
            |numbers: &[f32]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
        write_part(&mut out, "gradient mean", &bytes(&self.moments.mean));
        write_part(&mut out, "gradient square", &bytes(&self.moments.square));
        let digest = sha256(&out);
        out.extend_from_slice(digest.as_bytes());
        Ok(out)
    }

    /// A run that resumes from a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if the checkpoint is damaged or of another configuration. One of a run
    /// with another number of epochs is as good, unless it has begun more of them.
    pub fn resume(
        config: &'a Config,
        data: &'a Source,
        checkpoint: &[u8],
    ) -> Result<Self, VaeError> {
        let parts = Parts::read(checkpoint)?;
        let head = head(&parts)?;
        let own = Recorded::new("vae", config.clone());
        if head.config.version != own.version || !head.config.config.may_become(config) {
            return Err(broken("is of another configuration"));
        }
        let mut trainer = Self::new(config, data)?;
        if let Some(because) = trainer.refuses(&head.place) {
            return Err(broken(because));
        }
        trainer.model = parts.module("model", trainer.model)?;
        if let Some(state) = trainer.state.take() {
            trainer.state = Some(parts.module("state", state)?);
        }
        trainer.optimiser = parts.optimiser("optimiser", trainer.optimiser)?;
        trainer.prior_optimiser = parts.optimiser("prior optimiser", trainer.prior_optimiser)?;
        trainer.state_optimiser = parts.optimiser("state optimiser", trainer.state_optimiser)?;
        trainer.moments = Moments {
            mean: parts.numbers("gradient mean")?,
            square: parts.numbers("gradient square")?,
            weight: head.moments_weight,
        };
        trainer.place = head.place;
        Ok(trainer)
    }

    /// Why this run cannot be at a place.
    fn refuses(&self, place: &Place) -> Option<String> {
        let per_epoch = self.steps_per_epoch();
        let (epochs, begun) = (self.config.epochs, place.begun());
        let steps = place.epoch.checked_mul(per_epoch as u64);
        let steps = steps.and_then(|steps| steps.checked_add(place.batch as u64));
        if place.batch >= per_epoch {
            let done = place.batch;
            return Some(format!(
                "is {done} batches into an epoch, which has {per_epoch} of them"
            ));
        }
        if steps != Some(place.steps) {
            let (steps, epoch, batch) = (place.steps, place.epoch, place.batch);
            return Some(format!(
                "counts {steps} steps, which is not where batch {batch} after epoch {epoch} is"
            ));
        }
        (begun > epochs).then(|| format!("has begun {begun} epochs, and the run has {epochs}"))
    }
}
