{{/* Adds the defaults of this chart to values that lack them. `helm upgrade --reuse-values` passes only the values that the previous version knew. Each
     template begins with this. */}}
{{- define "nightshift.defaults" -}}
{{- include "nightshift.fill" (dict "into" .Values "from" (.Files.Get "files/defaults.yaml" | fromYaml)) -}}
{{- end -}}
{{- define "nightshift.fill" -}}
{{- $into := .into -}}
{{- range $name, $default := .from -}}
{{- if not (hasKey $into $name) -}}
{{- $_ := set $into $name $default -}}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $into $name)) (not (has $name (include "nightshift.whole" nil | fromJsonArray))) -}}
{{- include "nightshift.fill" (dict "into" (get $into $name) "from" $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{/* Values that are parts of Kubernetes objects. A field that is missing in them was removed on purpose. */}}
{{- define "nightshift.whole" -}}
["resources", "podSecurityContext", "securityContext"]
{{- end -}}
{{- define "nightshift.labels" -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}
{{- define "nightshift.selector" -}}
app.kubernetes.io/name: nightshift
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "nightshift.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- define "nightshift.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary .Release.Name "default" .Values.serviceAccount.create) }}
{{- end -}}
{{/* Names of cluster-wide objects contain release and namespace, so that two installations do not collide. */}}
{{- define "nightshift.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end -}}
{{/* The watched namespaces as a JSON list. Empty means all. */}}
{{- define "nightshift.namespaces" -}}
{{ .Values.watchNamespaces | default (compact (list .Values.watchNamespace)) | toJson }}
{{- end -}}
{{- define "nightshift.watchesAll" -}}
{{ eq (include "nightshift.namespaces" .) "[]" }}
{{- end -}}
{{- define "nightshift.watchesNodes" -}}
{{ or .Values.watchNodes (eq (include "nightshift.watchesAll" .) "true") }}
{{- end -}}
{{/* The pods of servers in the watched namespaces, as an item of `from` of a NetworkPolicy. */}}
{{- define "nightshift.serverPods" -}}
{{- if eq (include "nightshift.watchesAll" .) "true" -}}
namespaceSelector: {}
{{- else -}}
namespaceSelector:
  matchExpressions:
  - {key: kubernetes.io/metadata.name, operator: In, values: {{ include "nightshift.namespaces" . }}}
{{- end }}
podSelector: {matchLabels: {app.kubernetes.io/managed-by: nightshift}}
{{- end -}}
{{/* The permissions of the operator in the namespaces of servers. It has no pods/exec. For an update, the StatefulSet controller deletes
     the pod. The operator deletes it for a scheduled restart and for a requested restore (docs/adr/0020, 0023). The operator creates
     pods that make a node pull images, and deletes them (docs/adr/0038). */}}
{{- define "nightshift.rules" -}}
- apiGroups: [nightshift.dev]
  resources: [papermcservers, plugins]
  verbs: [list, watch]
- apiGroups: [nightshift.dev]
  resources: [papermcservers/status, plugins/status]
  verbs: [patch]
# Owner references with blockOwnerDeletion need this where OwnerReferencesPermissionEnforcement is enabled (OpenShift).
- apiGroups: [nightshift.dev]
  resources: [papermcservers/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services, persistentvolumeclaims]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
# Budgets for evictions (`spec.eviction`).
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
