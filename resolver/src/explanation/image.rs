//! Pure. Defines the chosen image.

use serde::{Deserialize, Serialize};

/// The Java version and the image of a chosen version set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenImage {
    /// The minimum Java version on which the whole version set starts.
    pub java: u32,
    /// The plugins that need it, with their versions, and unmanaged JARs by file name. Empty if Paper itself needs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The image. `None` if no image is known, and the operator uses its `gameImage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The Java version of the image, according to its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<u32>,
    /// How the image was chosen.
    pub choice: ImageChoice,
    /// The running image, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// The image that would be chosen without `spec.imagePolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// How the image of a version set was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ImageChoice {
    /// The user pinned it.
    Pinned,
    /// The operator is configured with one image for all servers (`gameImage`).
    Given,
    /// The newest published one with the lowest sufficient Java version.
    Newest,
    /// The newest published one with the Java version of the running image (`spec.imagePolicy`).
    SameJava,
    /// It runs now (`spec.imagePolicy`).
    Keep,
    /// No tags were read.
    Unknown,
}
