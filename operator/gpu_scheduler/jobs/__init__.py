"""From a GPUJob to a Job, and from a decision to the one write that places a pod."""
