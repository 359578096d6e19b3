// Command etcd starts the etcd server. The wrapper exists because etcd's own
// go.mod has replace lines, which `go install module@version` refuses.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
