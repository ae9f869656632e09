# cohort_grpc_sources(VARIABLE FILE.proto): the sources and headers protoc and gRPC's plugin make of
# a .proto file, in the current binary folder. Headers are among them so that they are made before
# whatever they are sources of is compiled.
function(cohort_grpc_sources variable proto)
  protobuf_generate_cpp(sources headers ${proto})
  get_filename_component(name ${proto} NAME_WE)
  set(service_source ${CMAKE_CURRENT_BINARY_DIR}/${name}.grpc.pb.cc)
  set(service_header ${CMAKE_CURRENT_BINARY_DIR}/${name}.grpc.pb.h)
  add_custom_command(
    OUTPUT ${service_source} ${service_header}
    COMMAND protobuf::protoc --grpc_out=${CMAKE_CURRENT_BINARY_DIR}
      --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
      -I ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${proto}
    DEPENDS ${proto}
    VERBATIM)
  # Generated code is not ours to warn about.
  set_source_files_properties(${sources} ${service_source} PROPERTIES COMPILE_OPTIONS -w)
  set(${variable} ${sources} ${headers} ${service_source} ${service_header} PARENT_SCOPE)
endfunction()
