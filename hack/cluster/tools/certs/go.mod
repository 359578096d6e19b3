module gpu-scheduler.io/hack/cluster/tools/certs

go 1.26.0
