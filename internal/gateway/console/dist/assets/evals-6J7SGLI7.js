/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-P5YI2UPY.js";import"./chunk-R7SOASUJ.js";import"./chunk-JCPNG7AZ.js";import"./chunk-VTKV7CEU.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
