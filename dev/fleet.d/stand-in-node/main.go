// stand-in-node is a node without a kubelet, for the measurement of many servers.
//
// It watches the pods of one namespace. It binds each pod to a node, reports that all its containers run, and gives it a loopback address. There it
// answers as the agent of a server that runs what its lock names, with nobody online. It ends the pods that are deleted.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

type pod struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp *string
	}
	Spec struct {
		NodeName       string
		InitContainers []container
		Containers     []container
		Volumes        []struct{ ConfigMap *struct{ Name string } }
	}
	Status struct{ PodIP, Phase string }
}

type container struct{ Name, Image, RestartPolicy string }

// agent is the state of one server and its agent.
type agent struct {
	pod        string // UID
	lock       string // digest
	minecraft  string
	build      int
	dataFormat int
	plugins    object
	since      time.Time
	staged     []string
}

// Longer than the operator waits before it calls a start verified. Otherwise each measurement would contain that minute.
const upFor = 2 * time.Minute

var (
	address   string // of the API server
	namespace string
	api       *http.Client

	mutex  sync.Mutex
	agents = map[string]*agent{} // by IP address
	begun  = map[string]bool{}   // by the UID of the pod
)

func request(method, path, contentType string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(encoded)
	}
	call, err := http.NewRequest(method, address+path, reader)
	if err != nil {
		return err
	}
	call.Header.Set("Content-Type", contentType)
	response, err := api.Do(call)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %d %.200s", method, path, response.StatusCode, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

func path(kind, name string) string { return all(kind) + "/" + name }

func all(kind string) string { return "/api/v1/namespaces/" + namespace + "/" + kind }

// newAgent reads the lock that the pod mounts. A pod without a lock only pulls images.
func newAgent(pod pod) (*agent, error) {
	created := &agent{pod: pod.Metadata.UID, plugins: object{}, since: time.Now().UTC().Add(-upFor)}
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap == nil || !strings.Contains(volume.ConfigMap.Name, "-lock-") {
			continue
		}
		var lockMap struct{ Data map[string]string }
		if err := request("GET", path("configmaps", volume.ConfigMap.Name), "", nil, &lockMap); err != nil {
			return nil, err
		}
		var files struct {
			Lock, Minecraft    string
			Build, DataVersion int
		}
		var lock struct {
			Plugins []struct{ Name, Version string }
		}
		if err := json.Unmarshal([]byte(lockMap.Data["files.json"]), &files); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(lockMap.Data["lock.json"]), &lock); err != nil {
			return nil, err
		}
		created.lock, created.minecraft, created.build, created.dataFormat = files.Lock, files.Minecraft, files.Build, files.DataVersion
		created.staged = []string{files.Lock}
		for _, plugin := range lock.Plugins {
			created.plugins[plugin.Name] = object{"version": plugin.Version, "enabled": true}
		}
	}
	return created, nil
}

// register returns the address of a new agent: 127.77.0.1 and later ones.
func register(created *agent) string {
	mutex.Lock()
	defer mutex.Unlock()
	number := len(agents)
	for {
		ip := fmt.Sprintf("127.77.%d.%d", number/250, number%250+1)
		if agents[ip] == nil {
			agents[ip] = created
			return ip
		}
		number++
	}
}

func start(pod pod) error {
	created, err := newAgent(pod)
	if err != nil {
		return err
	}
	ip := register(created)
	if pod.Spec.NodeName == "" {
		binding := object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": pod.Metadata.Name},
			"target": object{"kind": "Node", "name": "stand-in"}}
		if err := request("POST", path("pods", pod.Metadata.Name)+"/binding", "application/json", binding, nil); err != nil {
			return err
		}
	}
	return request("PATCH", path("pods", pod.Metadata.Name)+"/status", "application/strategic-merge-patch+json",
		object{"status": status(pod, ip)}, nil)
}

// status says that init containers have ended, that native sidecars and containers run, and that the pod is Ready.
func status(pod pod, ip string) object {
	now := time.Now().UTC().Format(time.RFC3339)
	running := object{"running": object{"startedAt": now}}
	ended := object{"terminated": object{"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
	of := func(container container, state object, started bool) object {
		return object{"name": container.Name, "image": container.Image, "imageID": container.Image, "state": state,
			"ready": true, "started": started, "restartCount": 0}
	}
	initial, containers, conditions := []object{}, []object{}, []object{}
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy == "Always" {
			initial = append(initial, of(container, running, true))
		} else {
			initial = append(initial, of(container, ended, false))
		}
	}
	for _, container := range pod.Spec.Containers {
		containers = append(containers, of(container, running, true))
	}
	for _, kind := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, object{"type": kind, "status": "True", "lastTransitionTime": now})
	}
	return object{"phase": "Running", "podIP": ip, "podIPs": []object{{"ip": ip}}, "startTime": now,
		"conditions": conditions, "initContainerStatuses": initial, "containerStatuses": containers}
}

func end(pod pod) error {
	mutex.Lock()
	delete(agents, pod.Status.PodIP)
	mutex.Unlock()
	options := object{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
		"preconditions": object{"uid": pod.Metadata.UID}}
	return request("DELETE", path("pods", pod.Metadata.Name), "application/json", options, nil)
}

func handle(pod pod) {
	mutex.Lock()
	isNew := !begun[pod.Metadata.UID]
	begun[pod.Metadata.UID] = true
	mutex.Unlock()
	var err error
	if pod.Metadata.DeletionTimestamp != nil {
		err = end(pod)
	} else if isNew {
		err = start(pod)
	}
	if err != nil {
		log.Println(pod.Metadata.Name, err)
	}
}

// watch handles each change of a pod. A watch without a version begins with all pods.
func watch() {
	changes := make(chan pod, 10_000)
	for range 4 {
		go func() {
			for pod := range changes {
				handle(pod)
			}
		}()
	}
	for {
		response, err := api.Get(address + all("pods") + "?watch=1")
		if err != nil {
			log.Println(err)
			time.Sleep(time.Second)
			continue
		}
		decoder := json.NewDecoder(response.Body)
		for {
			var event struct {
				Type   string
				Object pod
			}
			if decoder.Decode(&event) != nil {
				break
			}
			if event.Type == "ADDED" || event.Type == "MODIFIED" {
				changes <- event.Object
			}
		}
		response.Body.Close()
	}
}

func (agent *agent) report() object {
	now := time.Now().UTC()
	return object{
		"at": now, "podUid": agent.pod, "lock": agent.lock, "staged": agent.staged, "emptySince": agent.since,
		"players": object{"who": "nobody"},
		"server": object{"state": "up", "since": agent.since, "answeredAt": now, "minecraft": agent.minecraft, "build": agent.build,
			"plugins": agent.plugins},
		"world":  object{"floor": object{"minecraft": agent.minecraft, "dataVersion": agent.dataFormat}, "whole": true},
		"loaded": object{"worlds": object{"overworld": "opened", "the_nether": "opened", "the_end": "opened"}, "datapacks": object{}},
	}
}

// answer answers as the agent whose address was called.
func answer(writer http.ResponseWriter, call *http.Request) {
	local := call.Context().Value(http.LocalAddrContextKey).(net.Addr)
	ip, _, _ := net.SplitHostPort(local.String())
	mutex.Lock()
	defer mutex.Unlock()
	called := agents[ip]
	if called == nil {
		writer.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	body := json.NewEncoder(writer)
	switch call.URL.Path {
	case "/v1/report":
		body.Encode(called.report())
	case "/v1/stage":
		var files struct{ Lock string }
		json.NewDecoder(call.Body).Decode(&files)
		called.staged = append(called.staged, files.Lock)
		writer.WriteHeader(http.StatusAccepted)
	case "/v1/save":
		body.Encode(object{"confirmed": true, "tookMs": 1, "problem": nil})
	case "/v1/players":
		body.Encode(object{"who": "nobody"})
	default:
		writer.WriteHeader(http.StatusAccepted)
	}
}

// newClient reads a kubeconfig of dev/cluster.d/certificates.sh.
func newClient(file string) (*http.Client, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	value := func(key string) string {
		return regexp.MustCompile(key + `: "?([^",}\s]+)`).FindStringSubmatch(string(text))[1]
	}
	decoded := func(key string) []byte {
		bytes, err := base64.StdEncoding.DecodeString(value(key))
		if err != nil {
			log.Fatal(key, ": ", err)
		}
		return bytes
	}
	address = value("server")
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(decoded("certificate-authority-data"))
	pair, err := tls.X509KeyPair(decoded("client-certificate-data"), decoded("client-key-data"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: authority, Certificates: []tls.Certificate{pair}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 8}}, nil
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig of the stand-in node")
	flag.StringVar(&namespace, "namespace", "", "the namespace of the servers")
	flag.Parse()
	client, err := newClient(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	api = client
	go watch()
	log.Fatal(http.ListenAndServe("0.0.0.0:8470", http.HandlerFunc(answer)))
}
