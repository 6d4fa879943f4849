// Two programs of Kubernetes in one, as most of their packages are the same; the first argument says which is meant.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	programs := map[string]func() *cobra.Command{
		"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
		"kube-controller-manager": func() *cobra.Command { return manager.NewControllerManagerCommand() },
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubernetes kube-apiserver|kube-controller-manager ...")
		os.Exit(2)
	}
	command := programs[os.Args[1]]()
	os.Args = os.Args[1:]
	os.Exit(cli.Run(command))
}
