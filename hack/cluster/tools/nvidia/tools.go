//go:build tools

// Package tools names the program that the local cluster builds from this module.
package tools

import (
	_ "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime"
)
