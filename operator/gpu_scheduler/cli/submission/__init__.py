"""From the words of ``submit`` to a GPUJob."""
